/** Creates an ACL. */

import { NativeSelect, SegmentedControl, Stack, Text, TextInput } from "@mantine/core";
import { useId, useState } from "react";

import { api } from "../../api/client";
import type { AccessOptions, Acl, NewAcl } from "../../api/contract";
import { FormDialog } from "../../components/FormDialog";
import { useChange } from "./useChange";

interface Props {
  options: AccessOptions;
  isOpen: boolean;
  onClose: () => void;
}

/** Kafka's name of the cluster resource. */
const CLUSTER_NAME = "kafka-cluster";

export function AclDialog({ options, isOpen, onClose }: Props) {
  const types = Object.keys(options.operations);
  const firstType = types.find((type) => type.toUpperCase() === "TOPIC") ?? types[0] ?? "TOPIC";
  const [acl, setAcl] = useState<Required<NewAcl>>(emptyAcl(options, firstType));
  const permissionLabel = useId();
  const change = (changes: Partial<NewAcl>) => setAcl((before) => ({ ...before, ...changes }));
  const creating = useChange<NewAcl>({
    send: (created) => api.post<Acl>("/acls", created),
    queryKey: "acls",
    message: (created) => `ACL created: ${created.principal} is ${created.permission === "DENY" ? "denied" : "allowed"} ${created.operation}.`,
    onDone: () => {
      setAcl(emptyAcl(options, firstType));
      onClose();
    },
  });
  const isCluster = acl.resourceType.toUpperCase() === "CLUSTER";
  const isReady = [acl.principal, acl.resourceName, acl.host].every((text) => text.trim() !== "");

  function changeType(resourceType: string) {
    const operation = defaultOperation(options, resourceType);
    const wasCluster = isCluster ? { resourceName: "" } : {};
    const becomesCluster = resourceType.toUpperCase() === "CLUSTER" ? { resourceName: CLUSTER_NAME, patternType: "LITERAL" } : {};
    change({ resourceType, operation, ...wasCluster, ...becomesCluster });
  }

  return (
    <FormDialog
      title="Create an ACL"
      action="Create ACL"
      opened={isOpen}
      isBusy={creating.isPending}
      isReady={isReady}
      error={creating.error}
      onClose={onClose}
      onSubmit={() => creating.mutate(acl)}
    >
      <TextInput
        label="Principal"
        description="For example User:alice; User:* matches all users."
        placeholder="User:alice"
        data-autofocus
        required
        value={acl.principal}
        onChange={(event) => change({ principal: event.currentTarget.value })}
      />
      <Stack gap={4}>
        <Text id={permissionLabel} size="sm" fw={500}>
          Permission
        </Text>
        <SegmentedControl
          aria-labelledby={permissionLabel}
          data={[
            { value: "ALLOW", label: "Allow" },
            { value: "DENY", label: "Deny" },
          ]}
          value={acl.permission}
          onChange={(permission) => change({ permission })}
        />
      </Stack>
      <NativeSelect label="Resource type" data={types} value={acl.resourceType} onChange={(event) => changeType(event.currentTarget.value)} />
      <NativeSelect
        label="Operation"
        data={options.operations[acl.resourceType] ?? []}
        value={acl.operation}
        onChange={(event) => change({ operation: event.currentTarget.value })}
      />
      {!isCluster && (
        <>
          <NativeSelect label="Pattern type" data={options.patternTypes} value={acl.patternType} onChange={(event) => change({ patternType: event.currentTarget.value })} />
          <TextInput
            label="Resource name"
            description="With pattern type LITERAL, * matches all resources."
            placeholder="orders"
            required
            value={acl.resourceName}
            onChange={(event) => change({ resourceName: event.currentTarget.value })}
          />
        </>
      )}
      <TextInput label="Host" description="An IP address; * matches all hosts." value={acl.host} onChange={(event) => change({ host: event.currentTarget.value })} />
    </FormDialog>
  );
}

function emptyAcl(options: AccessOptions, resourceType: string): Required<NewAcl> {
  return {
    principal: "",
    operation: defaultOperation(options, resourceType),
    resourceType,
    resourceName: "",
    host: "*",
    permission: "ALLOW",
    patternType: options.patternTypes[0] ?? "LITERAL",
  };
}

/** READ or DESCRIBE rather than the first operation, which is ALL. */
function defaultOperation(options: AccessOptions, resourceType: string): string {
  const operations = options.operations[resourceType] ?? [];
  return operations.find((operation) => ["READ", "DESCRIBE"].includes(operation)) ?? operations[0] ?? "";
}
