"""Write the tables of the guide that come from the program. `make fmt` runs this; a test tells when one is stale."""

from __future__ import annotations

import re
from pathlib import Path

FAILURES = Path(__file__).resolve().parents[1] / "docs" / "guide" / "failures.md"
FAILURES_IN_CHINESE = FAILURES.with_suffix(".zh-CN.md")
# What the errors are called in Chinese; their hints have theirs in the program.
CHINESE = {
    "install-commands": "安装命令",
    "mpich-for-open-mpi": "MPICH 当成 Open MPI",
    "open-mpi-for-mpich": "Open MPI 当成 MPICH",
    "cuda-out-of-memory": "CUDA 内存不足",
    "no-gpu": "没有 GPU",
    "shared-memory": "共享内存",
    "locked-memory": "锁定内存",
    "memory": "内存不足",
    "user-namespaces": "用户命名空间",
    "shared-library": "共享库",
    "instructions": "CPU 缺少指令",
    "interpreter": "解释器",
    "not-executable": "无法执行",
    "permission": "权限",
    "no-answer": "没有应答",
    "daemon": "守护进程",
    "nccl-timeout": "NCCL 超时",
    "python-module": "Python 模块",
    "no-space": "磁盘空间不足",
    "not-enough-slots": "槽位不足",
    "root": "root",
    "hostfile": "hostfile",
    "mpirun-option": "mpirun 选项",
    "host-key": "主机密钥",
    "ssh-key": "ssh 密钥",
    "name": "名称",
    "mpi-mismatch": "MPI 不一致",
    "address-in-use": "端口被占用",
    "relative-path": "相对路径",
    "script": "脚本",
    "command-not-found": "找不到命令",
    "btl-tcp": "btl tcp",
    "no-route": "网络不可达",
    "connection": "连接",
    "missing-file": "缺少文件",
}


def known_errors() -> str:
    from oarsman.status.known_errors import KNOWN

    rows = (f"| {known.name.replace('-', ' ')} | {known.hint} |" for known in KNOWN)
    return "\n".join(["| error | hint |", "|---|---|", *rows])


def known_errors_in_chinese() -> str:
    from oarsman.status.known_errors import KNOWN
    from oarsman.text.catalogue import Translator

    rows = (f"| {CHINESE[known.name]} | {Translator('zh').of(known.hint)} |" for known in KNOWN)
    return "\n".join(["| 错误 | 提示 |", "|---|---|", *rows])


def fresh(text: str, table: str) -> str:
    """The text with its table as the program has it now."""
    marks = r"(<!-- made by scripts/tables.py: known errors -->\n).*?(<!-- end -->)"
    return re.sub(marks, lambda found: f"{found[1]}{table}\n{found[2]}", text, flags=re.S)


if __name__ == "__main__":
    FAILURES.write_text(fresh(FAILURES.read_text(), known_errors()))
    FAILURES_IN_CHINESE.write_text(fresh(FAILURES_IN_CHINESE.read_text(), known_errors_in_chinese()))
