"""Whether there is room on hosts, and where; in Chinese."""

SENTENCES = {
    "needs {asked:gang}; {fits:fits}: {full:full}": "需要 {asked}；{fits}：{full}",
    "needs {asked:gang}; {fits:fits}": "需要 {asked}；{fits}",
    "{host:word} is left out: {why:each}": "{host} 未被使用：{why}",
    "{why:reached}": "{why}",
    "1 more host is left out": "另有 1 台也未被使用",
    "{n:n} more hosts are left out": "另有 {n} 台也未被使用",
    "--oversubscribe starts it all the same": "加 --oversubscribe 仍可启动",
    "the inventory has no hosts": "没有任何主机",
    "no host can be used now": "现在没有可用的主机",
    "no host has the labels for {who:party}: {labels}": "没有主机具有 {who} 所需的标签：{labels}",
    "no host has {need:amount} for {who:party} ({most:most})": "没有主机能为 {who} 提供 {need}（{most}）",
    "no host with its labels has {need:amount} for {who:party} ({most:most})": (
        "标签相符的主机都不能为 {who} 提供 {need}（{most}）"
    ),
    "no host has {needs:amounts} together for {who:party}": "没有主机能同时为 {who} 提供 {needs}",
    "no host with its labels has {needs:amounts} together for {who:party}": (
        "标签相符的主机都不能同时为 {who} 提供 {needs}"
    ),
    "asks for {asked:amount}, the hosts have {whole:plain}": "要求 {asked}，所有主机共有 {whole}",
    "asks for {asked:amount}, the hosts with its labels have {whole:plain}": "要求 {asked}，标签相符的主机共有 {whole}",
    "even with nothing else on them, the hosts have room for {placed:n} of {all:parties}": (
        "即使没有别的作业，这些主机也只放得下 {all} 中的 {placed} 个"
    ),
}
PIECES = {
    "gang": {
        "{who:parties} with {each:amounts} each and 1 launcher with {first:amounts}": (
            "{who}（每个 {each}）和 1 个启动器（{first}）"
        ),
        "{who:parties} with {each:amounts} each": "{who}（每个 {each}）",
        "{who:parties} with {each:amounts} and 1 launcher with {first:amounts}": (
            "{who}（{each}）和 1 个启动器（{first}）"
        ),
        "{who:parties} with {each:amounts}": "{who}（{each}）",
    },
    "parties": {
        "1 launcher and {workers:counted}": "1 个启动器和 {workers}",
        "{n:n} more worker": "另外 {n} 个 Worker",
        "{n:n} more workers": "另外 {n} 个 Worker",
        "{all:counted}": "{all}",
    },
    "fits": {
        "it does not fit now": "现在放不下",
        "none fits now": "现在一个也放不下",
        "1 fits now": "现在放得下 1 个",
        "{n:n} fit now": "现在放得下 {n} 个",
    },
    "full": {"{host:word} has {free:plain} of {whole:amount} free{held:held?}": "{host} 共 {whole}，空闲 {free}{held}"},
    "party": {
        "one worker": "一个 Worker",
        "the launcher": "启动器",
        "the launcher and a worker": "启动器和一个 Worker",
    },
    "most": {"{host:word} has most: {n:plain}": "最多的是 {host}：{n}", "none has any": "都没有"},
}
