"""The job index of Simplified Chinese: `--on ssh`."""

from __future__ import annotations

SSH = {
    "Where jobs run: on this machine (the default), on SSH hosts or on a cluster.": (
        "在哪里运行：本机（默认）、SSH 主机或集群。"
    ),
    "With --on ssh, the file that names the hosts (also: OARSMAN_HOSTS).": (
        "与 --on ssh 同用：写明主机的文件（也可设 OARSMAN_HOSTS）。"
    ),
    "On SSH hosts: copy this folder to them (the default), or nothing.": (
        "在 SSH 主机上：把当前目录复制过去（默认），或者什么都不复制。"
    ),
    "--hosts needs --on ssh": "--hosts 要与 --on ssh 同用",
    "the jobs on SSH hosts": "SSH 主机上的作业",
    "the hosts of that file": "该文件中的主机",
    "No job can run on these hosts before that.": "在此之前，这些主机上不能运行任何作业。",
    "Jobs can run on these hosts.": "可以在这些主机上运行作业。",
    "{name}: waiting: {reason}": "{name}：等待中：{reason}",
    "{name}: waiting for its hosts": "{name}：正在等待主机",
    "waiting for its hosts: {reason}": "正在等待主机：{reason}",
    "it starts as soon as they can be used; `{command}` says what to do": (
        "主机一旦可用，它就会启动；`{command}` 说明该怎么做"
    ),
    "MACHINE": "机器",
    "Room": "资源",
    "fits: it can start now": "放得下：现在就可以启动",
    "does not fit now: {why}": "现在放不下：{why}",
    "does not fit, ever: {why}": "永远放不下：{why}",
    "on which hosts it would be": "会放在哪些主机上",
}
