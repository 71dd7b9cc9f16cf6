"""Chinese texts, in the catalogue and in the documents, have one word per thing and one form of each sign."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from oarsman.text.catalogue import catalogue

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    [
        ROOT / "README.zh-CN.md",
        *(page for top in ("docs", "examples", "deploy") for page in (ROOT / top).rglob("*.zh-CN.md")),
    ]
)
CODE = re.compile(r"^ *```.*?^ *```$|`[^`\n]*`|<!--.*?-->|\]\([^)]*\)|\b\S*://\S*", re.M | re.S)
HAN = r"[\u3400-\u9fff]"

# What the glossary at the top of the catalogue decided against, and what to write instead.
REJECTED = {
    r"账户": "账号",
    r"任务": "作业",
    r"接纳|获准": "准入",
    r"停用": "禁用",
    r"存储卷": "卷",
    r"存储声明|持久卷声明": "PVC",
    r"时长": "用时",
    r"你(?!好)": "您",
    r"再试": "重试",
    r"挂死|悬挂|僵住": "卡住",
    r"进程号": "rank (of MPI) or PID",
    r"主机公钥": "主机密钥",
    r"控制组": "cgroup",
    r"机架": "一组 SSH 主机",
    r"状况": "状态条件",
    r"(?<![\w（-])supervisor(?! stop)": "后台管理进程",
    r"(?<!Launcher（)启动器|(?<![\w{.'/-])launcher(?![\w}-])": "Launcher",
    r"(?<!Worker（)工作节点|(?<![\w{.'/-])worker(?![\w}-])": "Worker",
}
SIGNS = {
    rf"{HAN}[:;,!?]": "：；，！？",
    rf"{HAN}\(|\){HAN}": "（）",
    rf"{HAN}[\"']|[\"']{HAN}|[「」『』]": "“”",
    rf"{HAN}\.\.\.|(?<!…)…(?!…)": "……",
    r"(?:[\d}）] ?[x*]|[\u3400-\u9fff] x) ?[\d{（]": "×",
    r"\d(?:[KMGT]i?B|ms)\b": "a blank before the unit",
    rf"{HAN}[A-Za-z0-9]|[A-Za-z0-9]{HAN}": "a blank between Chinese and Latin",
    r"[\u3400-\u9fff）”]\n *[\u3400-\u9fff，。；：、（“]": "no line break within a phrase: it shows as a blank",
}
ALLOWED = {
    "'{text}' is not a duration",  # a length of time that somebody asks for, not how long something took
    "README.zh-CN.md: 任务",  # once, for readers who know jobs by that word
}


def texts() -> Iterator[tuple[str, str]]:
    """Each text with what names it, and a letter in place of its code."""
    for text, chinese in catalogue("zh").items():
        yield text, CODE.sub("K", chinese)
    for page in DOCUMENTS:
        yield str(page.relative_to(ROOT)), CODE.sub(_bare, page.read_text("utf-8"))


def _bare(code: re.Match[str]) -> str:
    return "" if code[0].startswith(("](", "<!--")) else "\n\n" if "\n" in code[0] else "K"


def offenders(table: dict[str, str]) -> list[str]:
    return [
        f"{name}: {found[0]!r} in {said[max(0, found.start() - 12) : found.end() + 12]!r}: write {right}"
        for name, said in texts()
        for pattern, right in table.items()
        for found in re.finditer(pattern, said)
        if name not in ALLOWED and f"{name}: {found[0]}" not in ALLOWED
    ]


def test_messages_that_chinese_documents_quote_are_those_that_readers_see() -> None:
    """As `Chinese`（`English`）, with … for what is filled in."""
    quoted = [
        (f"{page.name}: {chinese}", chinese.split("…"), english.split("…"))
        for page in DOCUMENTS
        for chinese, english in re.findall(rf"`([^`\n]*{HAN}[^`\n]*)`（`([^`\n]+)`）", page.read_text("utf-8"))
    ]
    said = [(re.sub(r"\{\w+\}", "", text), re.sub(r"\{\w+\}", "", zh)) for text, zh in catalogue("zh").items()]

    def there(parts: list[str], text: str) -> bool:
        return all(part.strip() in text for part in parts)

    assert len(quoted) > 10
    assert [name for name, zh, en in quoted if not any(there(zh, b) and there(en, a) for a, b in said)] == []


def test_a_term_has_the_word_of_the_glossary() -> None:
    assert offenders(REJECTED) == []


def test_signs_and_line_breaks_are_those_of_chinese_texts() -> None:
    assert offenders(SIGNS) == []
