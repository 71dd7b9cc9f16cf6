"""Kubernetes quantities, exactly: 500m cores, 4Gi of memory, 1k of something.

Amounts are Decimals in base units, so that nothing is rounded on the way and two spellings of one
amount compare equal.
"""

from __future__ import annotations

import re
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal

from oarsman.errors import did_you_mean
from oarsman.text.sentence import Text

# Kubernetes keeps amounts below 2^63 and no finer than one billionth.
_LARGEST = Decimal(2**63 - 1)
_FINEST = Decimal("1e-9")
_EXACT = Context(prec=80, Emax=MAX_EMAX, Emin=MIN_EMIN)

_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_FORM = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?P<suffix>[eE][+-]?[0-9]+|[A-Za-z]*)\Z", re.ASCII
)
_LONGEST = 64
_COMMON_SLIPS = {
    **dict.fromkeys(("K", "KB", "kB"), "k"),
    **dict.fromkeys(("MB", "mb"), "M"),
    **dict.fromkeys(("g", "gb", "GB"), "G"),
    **dict.fromkeys(("t", "tb", "TB"), "T"),
    **dict.fromkeys(("ki", "KI", "KiB"), "Ki"),
    **dict.fromkeys(("mi", "MI", "MiB"), "Mi"),
    **dict.fromkeys(("gi", "GI", "GiB"), "Gi"),
    **dict.fromkeys(("ti", "TI", "TiB"), "Ti"),
    **dict.fromkeys(("b", "B"), ""),
}


class QuantityError(ValueError):
    """Not a quantity. `hint` says what was probably meant."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


def parse(value: str | int | float) -> Decimal:
    """The amount in base units. Numbers count as the text they were written as."""
    text = repr(value) if isinstance(value, float) else str(value)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise QuantityError(Text("must be a quantity such as 2, 500m or 4Gi"))
    found = _FORM.match(text) if len(text) <= _LONGEST else None
    if found is None:
        hint = Text("leave the space out") if " " in text and _FORM.match(text[:_LONGEST].replace(" ", "")) else None
        raise QuantityError(Text("'{given}' is not a quantity such as 2, 500m or 4Gi", given=text[:40]), hint)
    number, suffix = Decimal(found["number"]), found["suffix"]
    if suffix in _DECIMAL:
        amount = _EXACT.scaleb(number, _DECIMAL[suffix])
    elif suffix in _BINARY:
        amount = _EXACT.multiply(number, Decimal(2 ** _BINARY[suffix]))
    elif suffix[1:].lstrip("+-").isdigit():
        exponent = int(suffix[1:])
        if abs(exponent) > 100:
            raise QuantityError(Text("the exponent {exponent} is out of range", exponent=exponent))
        amount = _EXACT.scaleb(number, exponent)
    else:
        meant = _COMMON_SLIPS.get(suffix)
        template = Text(
            "'{given}' has the unknown suffix '{suffix}'; known are n u m k M G T P E and Ki Mi Gi Ti Pi Ei"
        )
        better = did_you_mean(f"{found['number']}{meant}") if meant is not None else None
        raise QuantityError(Text(template, given=text, suffix=suffix), better)
    if abs(amount) > _LARGEST:
        raise QuantityError(Text("'{given}' is more than Kubernetes can count (2^63 - 1)", given=text))
    # Rounded away from zero to a billionth: a wish, however small, never becomes nothing.
    rounded = amount.quantize(_FINEST, rounding="ROUND_UP", context=_EXACT)
    whole = rounded.to_integral_value()
    return whole if whole == rounded else rounded.normalize(_EXACT)
