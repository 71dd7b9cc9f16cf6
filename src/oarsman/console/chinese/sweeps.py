WORDS = {
    "Sweeps": "参数扫描",
    "One manifest, many sets of parameters: each point is a job of its own.": (
        "一份清单，多组参数：每个点都是一个独立的作业。"
    ),
    "There are no sweeps yet.": "还没有参数扫描。",
    "{ended} of {total} ended, {failed} failed": "{total} 个点中 {ended} 个已结束，{failed} 个失败",
    "Point": "点",
    "Metric": "指标",
    "Parameter": "参数",
    "Why": "原因",
    "Metric by parameter": "指标与参数",
    "Results as CSV": "下载 CSV 结果",
    "Stop what runs of {name}? Results stay, and it can be resumed.": (
        "停止 {name} 正在运行的部分？结果会保留，之后可以继续。"
    ),
    "Delete {name} with all its jobs, logs and results?": "删除 {name} 及其全部作业、日志和结果？",
    "Stopped": "已停止",
    "NotSubmitted": "未提交",
}
