{{/* The environment of the operator; the two variables that others refer to come first. */}}
{{- define "kafscale.operatorVariables" -}}
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: KAFSCALE_OPERATOR_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
- name: KAFSCALE_OPERATOR_CONTROL_ADDRESS
  value: {{ .Values.operator.controlAddress | default (printf "%s.$(KAFSCALE_OPERATOR_NAMESPACE).svc:9094" (include "kafscale.operator" .)) | quote }}
- name: KAFSCALE_OPERATOR_BROKER_IMAGE
  value: {{ include "kafscale.image" (list . .Values.broker.image) | quote }}
- name: KAFSCALE_OPERATOR_OPERATOR_IMAGE
  value: {{ include "kafscale.image" (list . .Values.operator.image) | quote }}
- name: KAFSCALE_OPERATOR_ETCD_IMAGE
  value: {{ include "kafscale.image" (list . .Values.etcd.image) | quote }}
{{- with .Values.imagePullSecrets }}
- name: KAFSCALE_OPERATOR_IMAGE_PULL_SECRETS
  value: {{ range $index, $secret := . }}{{ if $index }},{{ end }}{{ $secret.name }}{{ end }}
{{- end }}
{{- with .Values.operator.namespaces }}
- name: KAFSCALE_OPERATOR_NAMESPACES
  value: {{ join "," . | quote }}
{{- end }}
{{- with .Values.operator.etcdEndpoints }}
- name: KAFSCALE_OPERATOR_ETCD_ENDPOINTS
  value: {{ join "," . | quote }}
{{- end }}
{{- with .Values.operator.allowedBuckets }}
- name: KAFSCALE_OPERATOR_ALLOWED_BUCKETS
  value: {{ join "," . | quote }}
{{- end }}
{{- with .Values.operator.allowedRoles }}
- name: KAFSCALE_OPERATOR_ALLOWED_ROLES
  value: {{ join "," . | quote }}
{{- end }}
{{- with .Values.operator.allowedEndpoints }}
- name: KAFSCALE_OPERATOR_ALLOWED_ENDPOINTS
  value: {{ join "," . | quote }}
{{- end }}
- name: KAFSCALE_OPERATOR_ALLOW_KUBE_ETCD
  value: {{ .Values.operator.allowKubeEtcd | default false | quote }}
- name: KAFSCALE_OPERATOR_CLUSTER_DOMAIN
  value: {{ .Values.operator.clusterDomain | quote }}
- name: KAFSCALE_OPERATOR_RESYNC_SEC
  value: {{ .Values.operator.resyncSeconds | quote }}
- name: KAFSCALE_OPERATOR_LEASE_DURATION_SEC
  value: {{ .Values.operator.leaseDurationSeconds | quote }}
- name: KAFSCALE_LOG_LEVEL
  value: {{ .Values.operator.log.level | quote }}
- name: KAFSCALE_LOGGING_FORMAT
  value: {{ .Values.operator.log.format | quote }}
{{- end -}}


{{/* The same with additional variables, which take precedence; a variable must not occur twice. */}}
{{- define "kafscale.operatorEnvironment" -}}
{{- $names := list -}}
{{- range .Values.operator.env }}{{ $names = append $names .name }}{{ end -}}
{{- $environment := list -}}
{{- range include "kafscale.operatorVariables" . | fromYamlArray -}}
{{- if not (has .name $names) }}{{ $environment = append $environment . }}{{ end -}}
{{- end -}}
{{- concat $environment .Values.operator.env | toYaml -}}
{{- end -}}
