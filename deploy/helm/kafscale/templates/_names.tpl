{{/* The prefix of object names: the release, and the chart unless the name of the release contains it. */}}
{{- define "kafscale.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "kafscale.operator" -}}
{{- include "kafscale.fullname" . }}-operator
{{- end -}}

{{- define "kafscale.minio" -}}
{{- include "kafscale.fullname" . }}-minio
{{- end -}}

{{- define "kafscale.console" -}}
{{- include "kafscale.fullname" . }}-console
{{- end -}}

{{/* The cluster that the console shows. */}}
{{- define "kafscale.consoleCluster" -}}
{{- .Values.console.cluster | default (include "kafscale.cluster" .) -}}
{{- end -}}

{{/* Not empty if that cluster is the one of this chart, and serves Kafka clients with TLS. */}}
{{- define "kafscale.consoleTls" -}}
{{- if and .Values.cluster.enabled (eq (include "kafscale.consoleCluster" .) (include "kafscale.cluster" .)) -}}
{{- if dig "tls" "enabled" false .Values.cluster.spec }}true{{ end -}}
{{- end -}}
{{- end -}}

{{- define "kafscale.cluster" -}}
{{- .Values.cluster.name | default .Release.Name -}}
{{- end -}}

{{/* The operator's ServiceAccount. */}}
{{- define "kafscale.serviceAccountName" -}}
{{- .Values.operator.serviceAccount.name | default (include "kafscale.operator" .) -}}
{{- end -}}

{{/* The namespaces that the operator watches, as a list in YAML; empty for all. */}}
{{- define "kafscale.watchedNamespaces" -}}
{{- $namespaces := .Values.operator.namespaces | default (list .Release.Namespace) -}}
{{- if not (has "*" $namespaces) -}}
{{- toYaml $namespaces -}}
{{- end -}}
{{- end -}}

{{/* The labels of an object; takes the chart and the name of a component. */}}
{{- define "kafscale.labels" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- with $root.Values.commonLabels }}
{{- toYaml . }}
{{ end -}}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{ include "kafscale.selector" (list $root $component) }}
app.kubernetes.io/name: {{ $component }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: kafscale
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
{{- end -}}

{{/* The selector labels of a component, which never change. */}}
{{- define "kafscale.selector" -}}
{{- $root := index . 0 -}}
app: {{ index . 1 }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
{{- end -}}

{{/* An image by its digest or else its tag; takes the chart and the values of the image. */}}
{{- define "kafscale.image" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository ($image.tag | default $root.Chart.AppVersion) -}}
{{- end -}}
{{- end -}}
