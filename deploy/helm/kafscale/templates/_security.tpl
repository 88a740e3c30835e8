{{/* What the "restricted" Pod Security Standard asks of a pod. */}}
{{- define "kafscale.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{/* The same of a container; and nothing writes to its own image. */}}
{{- define "kafscale.containerSecurity" -}}
allowPrivilegeEscalation: false
capabilities:
  drop: [ALL]
readOnlyRootFilesystem: true
{{- end -}}
