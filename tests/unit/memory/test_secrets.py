"""Secrets are found by their shape; ordinary words, ids and numbers are left alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.memory.secrets import MaskedStream, find_secrets, masked, masked_json

OPENAI = "sk-proj-" + "a1B2c3D4" * 4
STRIPE = "sk_live_51" + "Hxxxxxxxxxxxxxxxxxxxxxx"
AWS = "AKIA" + "IOSFODNN7EXAMPLE"
GITHUB = "ghp_" + "a1B2c3" * 6
SLACK = "xoxb-" + "123456789012-abcdefABCDEF"
GOOGLE = "AIza" + "Sy" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q"
TELEGRAM = "1234567890:" + "AAE" + "a1B2c3D4" * 4
JWT = "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6y"
PEM = (
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEAu1SU1LfVLPHCozMxH2Mo\n"
    "4lgOEePzNm0tRgeLezV6ffAt0gunVTLw7onL\n-----END RSA PRIVATE KEY-----"
)
CARD = "4111 1111 1111 1111"
INSTAR = "ik_" + "abcdefghijklm_abcdefghijklmnopqrstuvwxyz"
ALL = [OPENAI, STRIPE, AWS, GITHUB, SLACK, GOOGLE, TELEGRAM, JWT, PEM, CARD, INSTAR]


@pytest.mark.parametrize("secret", ALL)
def test_a_secret_is_masked_and_what_stands_around_it_stays(secret):
    text = f"before {secret} after"

    shown = masked(text)

    assert secret not in shown
    assert shown.startswith("before [a")
    assert shown.endswith(" was removed] after")


def test_several_secrets_are_found_in_order():
    found = find_secrets(f"{AWS} then {OPENAI} then {CARD}")

    assert [each.name for each in found] == ["an AWS access key", "an API key", "a card number"]


def test_a_pem_block_that_is_cut_off_is_masked_to_the_end():
    assert (
        masked("key: -----BEGIN PRIVATE KEY-----\nMIIE") == "key: [a private key (PEM) was removed]"
    )


def test_a_bearer_token_is_masked():
    shown = masked("curl -H 'Authorization: Bearer abcdef0123456789abcdef'")

    assert "0123456789" not in shown
    assert shown.startswith("curl -H '[a bearer token")


@pytest.mark.parametrize(
    "text",
    [
        "my monkey's keyboard layout is tokenized",
        "the PIN of the bike lock is 4417",
        "9c1185a5c5e9fc54612808977ee8f548b2258d31",
        "550e8400-e29b-41d4-a716-446655440000",
        "DE89 3704 0044 0532 0130 00",
        "order BX-100821 of 2026-03-16, 1,234,567.89 EUR",
        "call +49 30 901820 or 0151 23456789",
        "the task-force met; ask-me-anything-about-rust-and-python-today",
        "4111 1111 1111 1112",
        "1741600000000 milliseconds",
        "3.14159265358979323846",
    ],
)
def test_ordinary_text_is_left_alone(text):
    assert masked(text) == text


@given(st.lists(st.text("abcdefghijklmnopqrstuvwxyzäöü", min_size=1, max_size=20)))
def test_masking_leaves_words_alone(words):
    text = " ".join(words)

    assert masked(text) == text


@given(st.text(max_size=60), st.sampled_from(ALL), st.text(max_size=60))
def test_masking_twice_is_masking_once(before, secret, after):
    once = masked(f"{before} {secret} {after}")

    assert masked(once) == once


def test_every_string_of_a_json_value_is_masked():
    value = {"content": f"key {AWS}", "list": [OPENAI, 1, None, {"x": "plain"}]}

    shown = masked_json(value)

    assert shown["content"] == "key [an AWS access key was removed]"
    assert shown["list"][1:] == [1, None, {"x": "plain"}]
    assert OPENAI not in str(shown)


def streamed(pieces: list[str]) -> tuple[list[str], str]:
    stream = MaskedStream()
    shown = [stream.feed(piece) for piece in pieces]
    return shown, "".join([*shown, stream.rest()])


def test_an_ordinary_piece_is_shown_at_once():
    shown, whole = streamed(["Hello", " the", "re, it is", " 17", " o'clock", "。你好", "世界"])

    assert shown == ["Hello", " the", "re, it is", " 17", " o'clock", "。你好", "世界"]
    assert whole == "Hello there, it is 17 o'clock。你好世界"


@pytest.mark.parametrize(
    "secret", [OPENAI, AWS, GITHUB, SLACK, GOOGLE, JWT, CARD, INSTAR, TELEGRAM]
)
@pytest.mark.parametrize("size", [1, 3, 7])
def test_a_secret_in_pieces_is_never_shown(secret, size):
    text = f"it is {secret} indeed"
    pieces = [text[at : at + size] for at in range(0, len(text), size)]

    shown, whole = streamed(pieces)

    assert secret[14:] not in "".join(shown)
    assert secret[14:] not in whole
    assert whole.startswith("it is ")
    assert whole.endswith(" was removed] indeed")


def test_a_private_key_in_pieces_waits_for_its_end():
    pieces = [f"{line}\n" for line in f"Here:\n{PEM}\nDone.".split("\n")]

    shown, whole = streamed(pieces)

    assert shown[0] == "Here:\n"
    assert "MIIE" not in "".join(shown)
    assert whole == "Here:\n[a private key (PEM) was removed]\nDone.\n"


@given(st.lists(st.text(max_size=12), max_size=12))
def test_pieces_add_up_to_the_masked_whole(pieces):
    assert streamed(pieces)[1] == masked("".join(pieces))
