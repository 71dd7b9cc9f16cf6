"""What is taken out of texts that others read, and what stays."""

from __future__ import annotations

import pytest
from for_every import for_every
from hypothesis import given
from hypothesis import strategies as st

from oarsman.job.environment import EnvironmentWanted, digest_of, without_secrets
from oarsman.text.secrets import hidden, masked, secrets_in

HIDDEN = [
    "--index-url https://user:s3cret@packages.example/simple",
    "--extra-index-url=https://s3cret@packages.example/simple",
    "--extra-index-url https://s3cret:@packages.example/simple",
    "-i https://__token__:s3cret@packages.example:8443/simple",
    "oarlock @ git+https://s3cret:x-oauth-basic@git.example/a/b.git@main#egg=oarlock",
    "oarlock @ https://files.example/oarlock.whl?X-Amz-Signature=s3cret&x=1#sha256=00",
    "-f https://files.example/?private_token=s3cret",
    "-f https://files.example/?a=b&api_key=s3cret",
    "--proxy http://me:s3cret@proxy.example:3128",
    "http://me:p@s3cret@proxy.example",
    "socks5h://me:s3cret@proxy.example",
    "git+ssh://me:s3cret@git.example/a",
    "https://me:s3cret@[2001:db8::1]/simple",
    "HTTPS://ME:s3cret@packages.example",
    "-i https://me:s3cret'x@packages.example",
    '-i https://me:"s3cret@packages.example',
    "-i https://me:<s3cret@packages.example",
    "-i https://me:a/s3cret@packages.example/simple",
    "-i https://$s3cret:@packages.example",
]
KEPT = [
    "numpy==2.1.0",
    "oarlock @ git+ssh://git@git.example/a/b.git@v1",
    "oarlock @ https://files.example/oarlock.whl#sha256=0123&egg=oarlock",
    "--index-url https://${USER}:${TOKEN}@packages.example/simple",
    "--index-url https://packages.example/@scope/simple?page=1",
    "me@example.org asks about max_tokens=3",
    "https://packages.example/key/secret/token",
    "oarlock @ git+https://git.example:8443/a/b.git@main",
]


@for_every(HIDDEN)
def test_credentials_are_taken_out(text: str) -> None:
    assert "s3cret" not in masked(text)
    assert "****" in masked(text)
    assert any("s3cret" in secret for secret in secrets_in(text))


@for_every(KEPT)
def test_everything_else_stays(text: str) -> None:
    assert (masked(text), secrets_in(text)) == (text, frozenset())


@given(st.text("abc:/@?&=#$ \n{}tokenhttps", max_size=60))
def test_what_was_masked_once_stays_as_it_is(text: str) -> None:
    assert masked(masked(text)) == masked(text)


@pytest.mark.timeout(60)  # without limits each takes many minutes
@pytest.mark.parametrize(
    "piece",
    [
        "a.",
        "a://b:",
        "a://b:c@",
        "token.",
        "?token",
        "&token-",
        "--token-",
        "token=",
        "token='",
        'token="',
        "://",
        "a:",
    ],
)
def test_no_text_takes_long(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    for one in (text, f"?{text}", f"a://{text}", f"--{text}!"):
        assert len(masked(one)) <= len(one) * 5
        secrets_in(one)
        hidden({"command": [one], "env": [{"name": one, "value": one}]})


def test_secrets_are_known_as_programs_may_repeat_them() -> None:
    assert secrets_in("https://me:p%40ss%2Fword@host/") >= {"p%40ss%2Fword", "p@ss/word"}
    assert "abc" not in secrets_in("https://me:abc@host/")


def test_a_secret_behind_the_end_of_a_line_is_one() -> None:
    wanted = EnvironmentWanted(name="x", requirements="-i https://me:s3\\\ncret@host/\nnumpy\n")
    assert without_secrets(wanted).requirements == "-i https://****@host/\nnumpy\n"


def test_the_digest_tells_nothing_about_credentials() -> None:
    one, other = (EnvironmentWanted(name="x", requirements=f"-i https://{who}@host/\n") for who in ("me:a", "you:b"))
    assert digest_of(one) == digest_of(other)


@pytest.mark.parametrize(
    ("document", "shown"),
    [
        ({"env": [{"name": "HF_TOKEN", "value": "x"}]}, {"env": [{"name": "HF_TOKEN", "value": "****"}]}),
        ({"env": [{"name": "PGPASSWORD", "value": "x"}]}, {"env": [{"name": "PGPASSWORD", "value": "****"}]}),
        ({"env": [{"name": "authToken", "value": "x"}]}, {"env": [{"name": "authToken", "value": "****"}]}),
        ({"env": [{"name": "MAX_TOKENS", "value": "5"}]}, {"env": [{"name": "MAX_TOKENS", "value": "5"}]}),
        ({"env": [{"name": "https_proxy", "value": "http://a:b@c"}]}, None),
        ({"annotations": {"example.org/api-key": "x"}}, {"annotations": {"example.org/api-key": "****"}}),
        ({"labels": {"password": "x", "app": "y"}}, {"labels": {"password": "****", "app": "y"}}),
        ({"annotations": {"a": ' {"b": 1}', "b": "c"}}, {"annotations": {"a": "****", "b": "c"}}),
        ({"command": ["mpirun", "-x", "AWS_SECRET_ACCESS_KEY=x y"]}, None),
        ({"command": ["run", "--wandb-token", "x"]}, {"command": ["run", "--wandb-token", "****"]}),
        ({"command": ["sh", "-c", "run --password='a b' -q"]}, {"command": ["sh", "-c", "run --password=**** -q"]}),
        ({"env": [{"name": "DB_PASS", "value": "x"}]}, {"env": [{"name": "DB_PASS", "value": "****"}]}),
        ({"env": [{"name": "MYSQL_PWD", "value": "x"}]}, {"env": [{"name": "MYSQL_PWD", "value": "****"}]}),
        ({"env": [{"name": "PWD", "value": "/x"}]}, {"env": [{"name": "PWD", "value": "/x"}]}),
        ({"env": [{"name": "BASIC_AUTH", "value": "x"}]}, {"env": [{"name": "BASIC_AUTH", "value": "****"}]}),
        ({"annotations": {"example.org/sweep": '{"env": "a:b"}'}}, {"annotations": {"example.org/sweep": "****"}}),
        ({"env": [{"name": "PATH", "value": "/bin"}]}, {"env": [{"name": "PATH", "value": "/bin"}]}),
        ({"command": ["curl", "-H", "Authorization: Bearer x"]}, None),
        ({"command": ["run", "--tokenizer=bert"]}, {"command": ["run", "--tokenizer=bert"]}),
        ({"volumes": [{"secret": {"secretName": "keys"}}]}, {"volumes": [{"secret": {"secretName": "keys"}}]}),
        ({"replicas": 3, "suspend": False, "none": None}, {"replicas": 3, "suspend": False, "none": None}),
    ],
)
def test_documents_are_shown_without_what_their_names_call_secret(document: object, shown: object) -> None:
    found = hidden(document)
    assert found == shown if shown is not None else "****" in str(found)
    assert "a:b" not in str(found)
    assert hidden(found) == found
