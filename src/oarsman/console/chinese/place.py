WORDS = {
    "Hosts and queue": "主机与队列",
    "Hosts": "主机",
    "ready": "就绪",
    "left out": "未使用",
    "; {used} used": "；实际使用 {used}",
    "; {used} CPU busy": "；{used} 个 CPU 在忙",
    "Checked {when}: all is well": "检查于 {when}：一切正常",
    "Checked {when}; failures: {failed}, warnings: {warned}": "检查于 {when}；失败：{failed}，警告：{warned}",
    "1 slot": "1 个槽位",
    "{count} slots": "{count} 个槽位",
    "others": "其他人",
    "not of jobs": "非作业占用",
    "free": "空闲",
    "There are no hosts, or none that you may see.": "没有主机，或没有您可以查看的主机。",
    "Only your own jobs are listed; those of others count in the places.": (
        "只列出您自己的作业；名次中包含其他人的作业。"
    ),
    "Place": "名次",
    "Job": "作业",
    "Wants": "所需资源",
    "Waits for": "已等待",
    "Why it waits": "等待原因",
}
