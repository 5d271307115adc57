"""A function of the package that the workers call."""


def clean(page: str) -> str:
    return page.upper()
