"""What is wrong with a sweep, in Chinese."""

SENTENCES = {
    "this is no sweep": "这不是参数扫描",
    "this is no sweep: {why}": "这不是参数扫描：{why}",
    "a sweep has a grid or a list of points, one of the two": "参数扫描要有网格或点的列表，二者之一",
    "a parameter of the grid has no values": "网格中有一个参数没有值",
    "{count:n} points are too many; {most:n} is the most": "{count} 个点太多；最多 {most} 个",
    "the sweep is too large to be kept with its first job": "参数扫描太大，无法随第一个作业保存",
    "a shorter manifest, fewer points, or a grid": "请缩短清单，减少点数，或使用网格",
    "a point has no parameters": "有一个点没有参数",
    "{name:value} cannot be the name of a parameter": "{name} 不能作为参数名",
    "letters, digits and _, no digit first": "字母、数字和 _，不以数字开头",
    "two parameters differ only in capital letters": "有两个参数只有大小写不同",
    "point {index:n} has other parameters than point 0": "第 {index} 个点的参数与第 0 个点不同",
    "each has {names}": "每个点都有 {names}",
    "a parameter is not a finite number": "有一个参数不是有限的数",
    "the manifest asks for {name:word}, which no parameter is called": "清单需要 {name}，而没有这个名称的参数",
    "parameters are {names}": "参数有 {names}",
    "the metric is not a pattern: {why}": "指标不是有效的模式：{why}",
    "the pattern of the metric has no group that is the number": "指标的模式中没有表示数值的组",
    "the pattern of the metric repeats what repeats, or chooses, within": "指标的模式中有嵌套的重复或选择",
    "a sweep takes one MPIJob, as a mapping": "参数扫描需要一个 MPIJob（映射）",
    "the first job of {key:word} is gone, and with it what the sweep was": (
        "{key} 的第一个作业已不存在，扫描的内容也随之丢失"
    ),
    "begin it again as it was begun: what has ended is not repeated": "请照原样重新开始：已结束的不会重复",
    "point {index:n} ({values}): {why:say}": "第 {index} 个点（{values}）：{why}",
    "`oarsman sweep list` shows those there are": "`oarsman sweep list` 列出已有的参数扫描",
}
