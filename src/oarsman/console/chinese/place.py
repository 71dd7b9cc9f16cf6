WORDS: dict[str, str] = {}
