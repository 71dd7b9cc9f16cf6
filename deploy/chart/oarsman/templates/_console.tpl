{{/* The console: its name, its labels, and values that contradict each other. */}}

{{- define "oarsman.console.fullname" -}}
{{ include "oarsman.fullname" . }}-console
{{- end -}}

{{/* Not the operator's own, which select its pods. */}}
{{- define "oarsman.console.selector" -}}
app.kubernetes.io/name: {{ include "oarsman.name" . | trunc 55 }}-console
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "oarsman.console.labels" -}}
{{ include "oarsman.console.selector" . }}
app.kubernetes.io/component: console
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
{{- end -}}

{{- define "oarsman.console.scheme" -}}
{{- if .Values.console.tls.secretName -}}https{{- else -}}http{{- end -}}
{{- end -}}

{{/* As browsers reach it through the Ingress. */}}
{{- define "oarsman.console.ingressName" -}}
{{- with .Values.console.ingress -}}
{{- if and .host .tlsSecretName -}}https://{{- end -}}{{ .host }}
{{- end -}}
{{- end -}}

{{/* Every namespace has the cluster's certificate since 1.20. Before, it came only with a token. */}}
{{- define "oarsman.console.hasRootCertificate" -}}
{{- if semverCompare ">=1.20.0-0" .Capabilities.KubeVersion.Version -}}yes{{- end -}}
{{- end -}}

{{- define "oarsman.console.check" -}}
{{- $console := .Values.console -}}
{{- if not (or $console.tls.secretName $console.insecure) -}}
{{- fail "console.enabled needs console.tls.secretName, a secret of type kubernetes.io/tls: people send it their tokens for the cluster. If something else encrypts the way to the pod, an Ingress for example, set console.insecure to true." -}}
{{- end -}}
{{- if and $console.tls.secretName $console.insecure -}}
{{- fail "console.tls.secretName and console.insecure contradict each other: set one of them." -}}
{{- end -}}
{{- if and $console.ingress.enabled (not $console.ingress.host) -}}
{{- fail "console.ingress.enabled needs console.ingress.host: the console answers only to names that it knows." -}}
{{- end -}}
{{- if and $console.ingress.enabled (not (or $console.ingress.tlsSecretName $console.ingress.insecure)) -}}
{{- fail "console.ingress.enabled needs console.ingress.tlsSecretName, a secret with the certificate for the host: people send their tokens for the cluster through it. If something in front of the Ingress encrypts the way, set console.ingress.insecure to true." -}}
{{- end -}}
{{- if and $console.ingress.tlsSecretName $console.ingress.insecure -}}
{{- fail "console.ingress.tlsSecretName and console.ingress.insecure contradict each other: set one of them." -}}
{{- end -}}
{{- if and $console.tokenReview (or .Values.watchNamespaces (not .Values.rbac.create)) -}}
{{- fail "console.tokenReview makes a cluster-wide role, which neither watchNamespaces nor rbac.create=false allows. Set it to false." -}}
{{- end -}}
{{- end -}}
