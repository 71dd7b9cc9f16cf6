"""The words of the pages in Chinese, one file per page; what several pages say is in shell.py."""

from oarsman.console.chinese import (
    account,
    cluster,
    create,
    environments,
    job,
    jobs,
    log,
    overview,
    place,
    shell,
    states,
    sweeps,
)

_FILES = (account, cluster, create, environments, job, jobs, log, overview, place, shell, states, sweeps)
CATALOGUE: dict[str, str] = {english: chinese for file in _FILES for english, chinese in file.WORDS.items()}
