WORDS = {
    "There are no jobs yet.": "还没有作业。",
    "Capacity": "容量",
    "CPU": "CPU",
    "Memory": "内存",
    "GPU": "GPU",
    "thin: really used; wide: held by jobs": "细条：实际使用；宽条：作业占用",
    "Failures of the last day": "最近一天的失败",
    "None.": "无。",
    "{held} of {total} held, {free} free": "占用 {held} / {total}，空闲 {free}",
    "; {used} used, {idle} held but idle": "；实际使用 {used}，占用但闲置 {idle}",
    "Waiting": "正在等待",
    "Nothing waits.": "没有作业在等待。",
}
