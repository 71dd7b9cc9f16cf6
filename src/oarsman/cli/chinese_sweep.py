"""The job index of Simplified Chinese: `oarsman sweep`."""

from __future__ import annotations

SWEEP = {
    "Run one job for many sets of parameters: a grid or a list of points, as many at a time as fit, each a job of "
    "its own. The results are a table. A sweep that was stopped or killed goes on where it was.": (
        "用多组参数运行同一个作业：参数网格或点的列表，资源够多少就同时运行多少，每个点是一个独立的作业。"
        "结果是一张表。被停止或中断的扫描可以从原处继续。"
    ),
    "four points; parameters are variables too, such as SWEEP_BATCH": "四个点；参数同时也是环境变量，如 SWEEP_BATCH",
    "a row of the file is a point, and the last loss of each log a result": (
        "文件的每一行是一个点，每份日志中最后的 loss 作为结果"
    ),
    "the results, for a spreadsheet": "结果，供电子表格使用",
    "Whether to wait for the end; without, only what may start now is handed in.": (
        "是否等待结束；不等待时，只提交现在可以开始的点。"
    ),
    "A parameter and its values; repeatable: every combination is a point.": (
        "一个参数及其取值；可重复：每种组合是一个点。"
    ),
    "A CSV, JSON or YAML file with a point in each row.": "CSV、JSON 或 YAML 文件，每行一个点。",
    "A regular expression whose first group is a number of the log; the last one counts.": (
        "正则表达式，第一个分组是日志中的数字；以最后一个为准。"
    ),
    "How often a point that fails is tried again; default 0.": "失败的点重试几次；默认 0。",
    "How many points run at a time; default: as many as fit.": "同时运行几个点；默认资源够多少就多少。",
    "Run a sweep and wait for its end. {{name}} in the manifest or the command becomes the value of a parameter, "
    "which every rank also finds in the variable SWEEP_NAME. The same command again goes on with what is there. "
    "The exit code is 0 if every point succeeded.\n\n"
    "Ctrl-C stops what runs; `oarsman sweep resume` goes on.": (
        "运行一次参数扫描并等待结束。清单或命令中的 {{name}} 会换成参数的值，"
        "每个 rank 也能在变量 SWEEP_NAME 中读到它。再次执行同一条命令会接着已有的部分继续。"
        "所有点都成功时退出码为 0。\n\n"
        "按 Ctrl-C 停止正在运行的点；用 `oarsman sweep resume` 继续。"
    ),
    "four at a time": "每次四个",
    "List the sweeps, each with how far it is.": "列出参数扫描及其进度。",
    "Show the results of a sweep: parameters, state, duration, metric and cause of every point.": (
        "显示扫描结果：每个点的参数、状态、用时、指标和失败原因。"
    ),
    "for a spreadsheet": "供电子表格使用",
    "Stop sweeps: what runs is ended, nothing more is handed in, and results stay.": (
        "停止扫描：结束正在运行的点，不再提交新的点，结果保留。"
    ),
    "Go on with a sweep: points that have no job, or were stopped, are run. "
    "Points that ended are not repeated, whatever their outcome.": (
        "继续扫描：运行还没有作业的点和被停止的点。已经结束的点不论结果如何都不会重复。"
    ),
    "Delete sweeps: all their jobs, with their logs and results.": "删除扫描：其全部作业，连同日志和结果。",
    "DONE": "完成",
    "FAILED": "失败",
    "PARAMETERS": "参数",
    "POINT": "点",
    "METRIC": "指标",
    "no sweeps": "没有参数扫描",
    "{name} is being stopped; `oarsman sweep resume {name}` goes on with it": (
        "正在停止 {name}；用 `oarsman sweep resume {name}` 继续"
    ),
    "--grid {option}: write NAME=VALUE,VALUE,...": "--grid {option}：请写 NAME=VALUE,VALUE,...",
    "--grid {option}: this parameter was given before": "--grid {option}：这个参数已经给过了",
    "{source} is not text in UTF-8": "{source} 不是 UTF-8 文本",
    "{source} has no points": "{source} 里没有点",
    "a CSV file with names in its first row, or a list of mappings": "第一行为名称的 CSV 文件，或映射的列表",
    "{name}: {succeeded} of {total} succeeded, {failed} failed": (
        "{name}：{total} 个点中 {succeeded} 个成功，{failed} 个失败"
    ),
    "`oarsman sweep resume {name}` goes on with it": "用 `oarsman sweep resume {name}` 继续",
    "{name}: {count} of {total} points are handed in": "{name}：{total} 个点中已提交 {count} 个",
    "what runs is left to end by itself": "正在运行的点将自行结束",
    "stopping {name}; once more leaves it as it is": "正在停止 {name}；再按一次则保持原样",
    "{name}: {ended} of {total} ended, {failed} failed, {active} on their way": (
        "{name}：{total} 个点中 {ended} 个已结束，{failed} 个失败，{active} 个进行中"
    ),
}
