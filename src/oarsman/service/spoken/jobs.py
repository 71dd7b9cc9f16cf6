"""Conditions and events of a job, in Chinese."""

from oarsman import names
from oarsman.status import messages

_KEY = "{key:word}"
_REASONS = {
    names.REASON_CREATED: "已创建",
    names.REASON_RUNNING: "运行中",
    names.REASON_RESTARTING: "重启中",
    names.REASON_SUSPENDED: "已挂起",
    names.REASON_RESUMED: "已恢复",
    names.REASON_SUCCEEDED: "成功",
    names.REASON_FAILED: "失败",
    names.REASON_EVICTED: "被驱逐",
    names.REASON_BACKOFF: "超过重试次数",
    names.REASON_DEADLINE: "超过期限",
    names.REASON_STOPPED: "被用户停止",
    names.REASON_INVALID: "校验错误",
    names.REASON_CONFLICT: "资源已存在",
    names.REASON_PLACEMENT: "位置错误",
    names.REASON_BARRIER: "主机未就绪",
    names.REASON_HOST_LOST: "主机失联",
    names.REASON_WAITING: "等待资源",
    names.REASON_NO_HOSTS: "等待主机",
    names.REASON_NEVER_FITS: "永远放不下",
    names.REASON_ENVIRONMENT: "环境未就绪",
    names.REASON_ADMITTED: "已准入",
    names.REASON_UNSUPPORTED: "不支持",
    names.REASON_TROUBLE: "遇到问题",
    names.REASON_SCALED: "已伸缩",
    names.REASON_TTL: "保留期已过",
    names.REASON_REMARK: "说明",
    names.REASON_REWRITTEN: "启动命令行已改写",
    names.REASON_WORKER_REPLACED: "Worker 被替换",
    names.REASON_OUTDATED: "编辑未生效",
    names.REASON_UNVERIFIED: "位置未验证",
}
SENTENCES = {
    **_REASONS,
    messages.SUSPENDED: "MPIJob 已挂起",
    messages.RESUMED: "MPIJob 已恢复",
    messages.created(_KEY): "MPIJob {key} 已创建。",
    messages.running(_KEY): "MPIJob {key} 正在运行。",
    messages.not_running_suspended(_KEY): "MPIJob {key} 已挂起。",
    messages.not_running_finished(_KEY): "MPIJob {key} 已结束。",
    messages.never_ran(_KEY): "MPIJob {key} 已结束；还没等看到它运行，它就结束了。",
    messages.succeeded(_KEY): "MPIJob {key} 已成功完成。",
    messages.failed(_KEY): "MPIJob {key} 失败",
    messages.failed(_KEY, "{why:say}"): "MPIJob {key} 失败：{why}",
    messages.conflict('"{name:word}" of Kind "{kind:word}"'): "资源 {kind} {name} 已存在，且不由 MPIJob 管理",
    messages.conflict("{what}"): "资源 {what} 已存在，且不由 MPIJob 管理",
    messages.rewritten(["{changes:changes}"]): "启动命令行已改写，使 Open MPI 4 和 5 都能接受：{changes}",
    "attempt {number:n} failed: {why:say}; the next try starts in {delay:n} s, {allowed:n} left": (
        "第 {number} 次尝试失败：{why}；{delay} 秒后再试，还可以失败 {allowed} 次"
    ),
    "number {position:n} in the queue": "排在队列第 {position} 位",
    "number {position:n} in the queue: {why:say}": "排在队列第 {position} 位：{why}",
    "in the queue": "在队列中",
    "in the queue: {why:say}": "在队列中：{why}",
    "after {count:n} attempts: {why:say}": "尝试 {count} 次之后：{why}",
    "not started: {why:say}": "没有启动：{why}",
    "MPIJob {key:word} has room and starts": "MPIJob {key} 有了资源，开始启动",
    "what was in the way is gone": "障碍已经消除",
    "MPIJob {key:word} is deleted {seconds:n} s after its end": "MPIJob {key} 在结束 {seconds} 秒后被删除",
    "it was still running after its deadline of {seconds:n} s": "过了 {seconds} 秒的期限，它仍在运行",
    "MPIJob {key:word} was active longer than its deadline of {seconds:n} s": (
        "MPIJob {key} 运行超过了 {seconds} 秒的期限"
    ),
    "MPIJob {key:word} is scaled from {before:n} to {after:n} workers": (
        "MPIJob {key} 从 {before} 个 Worker 调整到 {after} 个"
    ),
    "edited, and without effect on members that exist: {fields}": "已编辑，但对已有的成员不起作用：{fields}",
    "all members are as asked for": "所有成员都符合要求",
    "placement not verified: no rank reported where it ran": "位置未经验证：没有进程报告它在哪里运行",
    "it was stopped because the user asked for it": "应用户要求停止",
    "MPIJob {key:word} was stopped because the user asked for it": "MPIJob {key} 应用户要求停止",
    "Found validation errors: {found:each}": "校验发现错误：{found}",
    # -- hosts that are waited for, and what befell them ---------------------------------------------------
    "{host:word} was not ready after {waited:span}: {why:say}": "{host} 过了 {waited} 仍未就绪：{why}",
    "{host:word} is replaced: {why:say}": "{host} 被替换：{why}",
    "it does not exist yet": "它还不存在",
    "it is going away": "它正在退出",
    "it is pending": "它在等待",
    "it is running": "它在运行",
    "it is succeeded": "它已成功结束",
    "it is failed": "它已失败",
    "it vanished": "它消失了",
    "it was deleted by someone else": "它被别人删除了",
    "it ran out of memory": "它内存不足",
    "it ran out of memory: {why:say}": "它内存不足：{why}",
    "it was evicted": "它被驱逐了",
    "it was evicted: {why:say}": "它被驱逐了：{why}",
    "its host was lost": "它的主机失联了",
    "its host was lost: {why:say}": "它的主机失联了：{why}",
    "it ended": "它结束了",
    "it ended: {why:say}": "它结束了：{why}",
    "it failed ({reason:word})": "它失败了（{reason}）",
    "it failed ({reason:word}): {why:say}": "它失败了（{reason}）：{why}",
    "it ended with code {code:n}": "它以退出码 {code} 结束",
    "it ended with code {code:n}: {why:say}": "它以退出码 {code} 结束：{why}",
    # -- where ranks ran -------------------------------------------------------------------------------------
    "rank {rank:n} ran on {host:word}, planned were {count:n} ranks{more:more?}": (
        "进程 {rank} 在 {host} 上运行，而计划只有 {count} 个进程{more}"
    ),
    "rank {rank:n} ran on {host:word}, planned {planned:word} (and {more:n} more)": (
        "进程 {rank} 在 {host} 上运行，计划是 {planned}（另有 {more} 个）"
    ),
    "rank {rank:n} ran on {host:word}, planned {planned:word}": "进程 {rank} 在 {host} 上运行，计划是 {planned}",
    "rank {rank:n} never ran, planned {host:word} (and {more:n} more)": (
        "进程 {rank} 没有运行，计划在 {host} 上（另有 {more} 个）"
    ),
    "rank {rank:n} never ran, planned {host:word}": "进程 {rank} 没有运行，计划在 {host} 上",
    "rank {rank:n} ran on {host:word}, which is not a host of this job{more:more?}": (
        "进程 {rank} 在 {host} 上运行，而它不是此作业的主机{more}"
    ),
    # -- ranks that are behind ---------------------------------------------------------------------------------
    "{late:n} rounds of steps behind the others": "比其他进程落后 {late} 轮",
    "at step {step:word}, the others at {usual:word}": "在第 {step} 步，其他进程在第 {usual} 步",
    "silent for {silence:n} s, the others wrote {others:n} s ago": (
        "已有 {silence} 秒没有输出，其他进程在 {others} 秒前还有输出"
    ),
}
PIECES = {
    "span": {"{n:n} min": "{n} 分钟", "{n:n} s": "{n} 秒"},
    "more": {" (and {n:n} more)": "（另有 {n} 个）"},
    "changes": {
        "{one:word} became {other:word}, {more:changes}": "{one} 改为 {other}，{more}",
        "{one:word} became {other:word}": "{one} 改为 {other}",
    },
}
