WORDS = {
    "Environments": "环境",
    "A set of packages with a name: built once, then attached to any job.": (
        "一组命名的软件包：构建一次，即可关联到任意作业。"
    ),
    "New environment": "新建环境",
    "There are no environments yet.": "还没有环境。",
    "Waiting": "等待中",
    "Building": "构建中",
    "Ready": "就绪",
    "{count} packages": "{count} 个软件包",
    "used by {count} jobs": "被 {count} 个作业使用",
    "Build log": "构建日志",
    "Change": "修改",
    "Close": "关闭",
    "Delete the environment {name}?": "删除环境 {name}？",
    "the one at hand": "现有的",
    "the image of the jobs, which builds it": "作业使用的镜像，由它来构建",
    "Requirements": "依赖",
    "as in requirements.txt; a lock file is fine too": "与 requirements.txt 相同；也可以是锁定文件",
    "Build": "构建",
}
