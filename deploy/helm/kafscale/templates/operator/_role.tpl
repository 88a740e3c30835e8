{{/* A role and its binding; takes the chart, "" or "Cluster", a suffix of the name, the namespace, the rules. */}}
{{- define "kafscale.role" -}}
{{- $root := index . 0 -}}
{{- $scope := index . 1 -}}
{{- $name := printf "%s%s" (include "kafscale.operator" $root) (index . 2) -}}
{{- $namespace := index . 3 -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $scope }}Role
metadata:
  name: {{ $name }}
  {{- with $namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "kafscale.labels" (list $root "kafscale-operator") | nindent 4 }}
rules:
  {{- toYaml (index . 4) | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $scope }}RoleBinding
metadata:
  name: {{ $name }}
  {{- with $namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "kafscale.labels" (list $root "kafscale-operator") | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $scope }}Role
  name: {{ $name }}
subjects:
- kind: ServiceAccount
  name: {{ include "kafscale.serviceAccountName" $root }}
  namespace: {{ $root.Release.Namespace }}
{{- end -}}
