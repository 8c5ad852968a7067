LANGUAGE_OF: dict[str, str] = {"choenni2021": "en"}
