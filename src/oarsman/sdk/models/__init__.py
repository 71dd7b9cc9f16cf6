"""What goes over the wire between a server and whoever asks it: the same models for REST, pages and SDK.

In JSON the names are camelCase, times RFC 3339 in UTC. Everything here is a value: it is made by
the desk from what the engines know, and never changed.
"""

from oarsman.sdk.models.base import Label, Name, Value
from oarsman.sdk.models.before import FitView, PreviewView, ProblemView, Template
from oarsman.sdk.models.environments import BuildLogView, EnvironmentSpec, EnvironmentView
from oarsman.sdk.models.jobs import (
    AttemptView,
    CauseView,
    Clone,
    ConditionView,
    Create,
    EventView,
    Job,
    JobChange,
    JobList,
    JobQuery,
    JobSummary,
    RankView,
    Scale,
    Step,
)
from oarsman.sdk.models.logs import LogFilter, LogLineView, LogPageView
from oarsman.sdk.models.place import AmountsView, HoldingView, HostView, Overview, QueueEntry, RecentFailure, UsagePoint
from oarsman.sdk.models.progress import MetricPoint, MetricSeries, Progress, RankProgress
from oarsman.sdk.models.server import ProblemDetails, ServerInfo
from oarsman.sdk.models.sweeps import Parameter, SweepPoint, SweepSpec, SweepView
from oarsman.sdk.models.who import (
    Account,
    AccountChange,
    AccountRole,
    AuditEntry,
    AuditPage,
    ClusterLogin,
    Identity,
    Login,
    MadeToken,
    NewAccount,
    NewToken,
    PasswordChange,
    Role,
    Token,
)

__all__ = [
    "Account",
    "AccountChange",
    "AccountRole",
    "AmountsView",
    "AttemptView",
    "AuditEntry",
    "AuditPage",
    "BuildLogView",
    "CauseView",
    "Clone",
    "ClusterLogin",
    "ConditionView",
    "Create",
    "EnvironmentSpec",
    "EnvironmentView",
    "EventView",
    "FitView",
    "HoldingView",
    "HostView",
    "Identity",
    "Job",
    "JobChange",
    "JobList",
    "JobQuery",
    "JobSummary",
    "Label",
    "LogFilter",
    "LogLineView",
    "LogPageView",
    "Login",
    "MadeToken",
    "MetricPoint",
    "MetricSeries",
    "Name",
    "NewAccount",
    "NewToken",
    "Overview",
    "Parameter",
    "PasswordChange",
    "PreviewView",
    "ProblemDetails",
    "ProblemView",
    "Progress",
    "QueueEntry",
    "RankProgress",
    "RankView",
    "RecentFailure",
    "Role",
    "Scale",
    "ServerInfo",
    "Step",
    "SweepPoint",
    "SweepSpec",
    "SweepView",
    "Template",
    "Token",
    "UsagePoint",
    "Value",
]
