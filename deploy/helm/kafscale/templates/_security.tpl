{{/* The security context of a pod, for the Pod Security Standard "restricted". */}}
{{- define "kafscale.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{/* The same for a container, with a read-only root file system. */}}
{{- define "kafscale.containerSecurity" -}}
allowPrivilegeEscalation: false
capabilities:
  drop: [ALL]
readOnlyRootFilesystem: true
{{- end -}}
