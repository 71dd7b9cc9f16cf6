from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarsman.manifest.quantity import QuantityError, parse


@pytest.mark.parametrize(
    ("written", "amount"),
    [
        ("0", "0"),
        ("1", "1"),
        (2, "2"),
        (0.1, "0.1"),
        ("100m", "0.1"),
        ("1k", "1000"),
        ("1n", "1e-9"),
        ("5u", "5e-6"),
        ("4Gi", str(4 * 2**30)),
        ("1.5Gi", str(3 * 2**29)),
        ("0.5Ki", "512"),
        ("1024Ki", str(2**20)),
        ("1e3", "1000"),
        ("1E3", "1000"),
        ("1E", "1e18"),
        ("12e6", "12e6"),
        ("1E-3", "0.001"),
        (".5", "0.5"),
        ("5.", "5"),
        ("+7", "7"),
        ("-3", "-3"),
        ("0.1n", "1e-9"),
        ("1500m", "1.5"),
        ("1000", "1000"),
        ("8Ei", None),
        ("1e-100", "1e-9"),
        ("0e100", "0"),
        ("9223372036854775807", "9223372036854775807"),
        ("1025", "1025"),
        ("1Ki", "1024"),
        ("1023.5Ki", "1048064"),
        ("-1Ki", "-1024"),
        ("2P", "2e15"),
        ("1.0000000001", "1.000000001"),
        ("3e0", "3"),
        ("0" * 63 + "1", "1"),
        ("7Ei", str(7 * 2**60)),
        (1e-3, "0.001"),
    ],
)
def test_an_amount_is_exact(written, amount: str | None) -> None:
    if amount is None:
        with pytest.raises(QuantityError):
            parse(written)
        return
    assert parse(written) == Decimal(amount)


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("", None),
        ("Gi", None),
        ("1Z", None),
        ("1K", "did you mean '1k'?"),
        ("4GB", "did you mean '4G'?"),
        ("2 Gi", "leave the space out"),
        ("1e", None),
        ("1e999", None),
        ("1e20", None),
        ("--1", None),
        ("1.2.3", None),
        ("٣", None),
        ("9" * 100, None),
        ("two", None),
        ("1GiB", "did you mean '1Gi'?"),
        ("0x10", None),
        ("1_000", None),
        ("0e101", None),
        ("1e-101", None),
        ("9223372036854775808", None),
        ("0" * 64 + "1", None),
        ("1 % 2", None),
        ("3 Q", "leave the space out"),
        ("1b", "did you mean '1'?"),
    ],
)
def test_what_kubernetes_refuses_is_refused(written: str, hint: str | None) -> None:
    with pytest.raises(QuantityError) as caught:
        parse(written)
    assert caught.value.hint == hint


@pytest.mark.parametrize("value", [True, None, [], {}, b"1"])
def test_only_text_and_numbers_are_quantities(value) -> None:
    with pytest.raises(QuantityError, match=r"^must be a quantity such as"):
        parse(value)


@given(st.integers(-(2**63) + 1, 2**63 - 1), st.sampled_from([("", 0), ("m", -3), ("n", -9), ("e-6", -6)]))
def test_what_is_written_is_read_to_the_last_digit(whole: int, suffix: tuple[str, int]) -> None:
    assert parse(f"{whole}{suffix[0]}") == Decimal(whole).scaleb(suffix[1])


@given(
    st.one_of(
        st.text(max_size=20), st.from_regex(r"[+-]?[0-9.]{1,6}([eE][+-]?[0-9]{1,4}|[A-Za-z]{0,2})", fullmatch=True)
    )
)
def test_any_text_is_a_quantity_or_a_quantity_error(text: str) -> None:
    try:
        amount = parse(text)
    except QuantityError:
        return
    assert abs(amount) < 2**63
