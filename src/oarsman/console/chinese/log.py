WORDS = {
    "Log": "日志",
    "Older lines…": "更早的日志……",
    "Nothing was written yet.": "还没有输出。",
    "To the newest line": "到最新一行",
    "The connection is lost; trying again…": "连接已断开，正在重试……",
}
