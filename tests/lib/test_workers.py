import os

import pytest

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.progress import each


def test_each_call_is_told_with_its_place_and_has_the_variables_of_its_process():
    names = ["PLUMBLINE_TOLD", "PLUMBLINE_NOT_TOLD"]
    found = dict(each(os.getenv, [(name,) for name in names], 2, {names[0]: "so"}))
    assert found == {0: "so", 1: None}
    assert names[0] not in os.environ


def test_a_process_that_is_killed_is_one_sentence():
    with pytest.raises(UserError):
        list(each(os._exit, [(9,), (9,)], 1))
