"""Columns that tables of several analyses of this study have."""

from plumbline.builders.core.schema import Column
from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.builders.datasets.politicians.build import GENDERS
from plumbline.builders.datasets.words.build import POS

MALE, FEMALE, NON_BINARY = (GENDERS.index(g) for g in ("male", "female", "non-binary"))
LANGUAGE = Column("language", "string", "language of names and words")
PART = Column("pos", "label", "universal part of speech", labels=POS)
MODEL = Column("model", "string", "name of the model in params.yaml")
PLACE = (MODEL, LANGUAGE, PART)
WORD = Column("word", "string", "form of the word")
LEMMA = Column("lemma", "string", "its lemma")
GENDER = Column("gender", "label", "the paper's grouping", labels=GENDERS)
SENTIMENT = Column("sentiment", "label", "most probable sentiment of a word", labels=SENTIMENTS)
TOP_K = Column("top_k", "int64", "words or pairs with the largest deviations", minimum=0)
CANDIDATES = Column("candidates", "int64", "words or pairs they are taken from", minimum=0)
REASON = Column("reason", "string", "why there is no number; null where there is", nullable=True)
FAMILY = Column("family", "int64", "tests in the family that p_bh is taken over", minimum=1)
TESTED = Column("tested", "int64", "tests that p_bh is taken over; 0 where none", minimum=0)
