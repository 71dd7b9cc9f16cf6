WORDS = {
    "There are no jobs yet.": "还没有作业。",
    "Capacity": "容量",
    "CPU": "CPU",
    "Memory": "内存",
    "GPU": "GPU",
    "dark: really used; light: held by jobs": "深色：实际使用；浅色：作业占用",
    "Failures of the last day": "最近一天的失败",
    "None.": "无。",
}
