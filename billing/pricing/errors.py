"""What pricing refuses."""


class PricingError(Exception):
    """Pricing refused."""


class UnknownPrice(PricingError):
    """The book has no price for this charge dimension. Permanent for this book: import a version that prices it."""


class NoPriceBook(PricingError):
    """No book of this name and currency is in effect. Transient: import one, or wait until it takes effect."""


class PriceBookConflict(PricingError):
    """This name and version (or this time of effect) already stands for another book. Permanent: raise the version."""


class PriceBookInvalid(PricingError):
    """The file is not a price book. Permanent: correct the field that the message names."""
