/** A new rule: who may, or may not, do what to which resource, from where. */

import { NativeSelect, SegmentedControl, Stack, Text, TextInput } from "@mantine/core";
import { useId, useState } from "react";

import { api } from "../../api/client";
import type { AccessWords, Acl, NewAcl } from "../../api/contract";
import { FormDialog } from "../../components/FormDialog";
import { useChange } from "./useChange";

interface Props {
  words: AccessWords;
  isOpen: boolean;
  onClose: () => void;
}

/** The cluster is one, and Kafka calls it so. */
const CLUSTER_NAME = "kafka-cluster";

export function AclDialog({ words, isOpen, onClose }: Props) {
  const types = Object.keys(words.operations);
  const firstType = types.find((type) => type.toUpperCase() === "TOPIC") ?? types[0] ?? "TOPIC";
  const [rule, setRule] = useState<Required<NewAcl>>(emptyRule(words, firstType));
  const permissionLabel = useId();
  const change = (changes: Partial<NewAcl>) => setRule((before) => ({ ...before, ...changes }));
  const creating = useChange<NewAcl>({
    send: (asked) => api.post<Acl>("/acls", asked),
    shownIn: "acls",
    done: (asked) => `${asked.principal} ${asked.permission === "DENY" ? "may not" : "may"} ${asked.operation} now.`,
    onDone: () => {
      setRule(emptyRule(words, firstType));
      onClose();
    },
  });
  const isCluster = rule.resourceType.toUpperCase() === "CLUSTER";
  const isReady = [rule.principal, rule.resourceName, rule.host].every((text) => text.trim() !== "");

  function changeType(resourceType: string) {
    const operation = usualOperation(words, resourceType);
    const wasCluster = isCluster ? { resourceName: "" } : {};
    const becomesCluster = resourceType.toUpperCase() === "CLUSTER" ? { resourceName: CLUSTER_NAME, patternType: "LITERAL" } : {};
    change({ resourceType, operation, ...wasCluster, ...becomesCluster });
  }

  return (
    <FormDialog
      title="Create a rule"
      action="Create rule"
      opened={isOpen}
      isBusy={creating.isPending}
      isReady={isReady}
      error={creating.error}
      onClose={onClose}
      onSubmit={() => creating.mutate(rule)}
    >
      <TextInput
        label="Principal"
        description="Such as User:alice; User:* is everybody."
        placeholder="User:alice"
        data-autofocus
        required
        value={rule.principal}
        onChange={(event) => change({ principal: event.currentTarget.value })}
      />
      <Stack gap={4}>
        <Text id={permissionLabel} size="sm" fw={500}>
          Permission
        </Text>
        <SegmentedControl
          aria-labelledby={permissionLabel}
          data={[
            { value: "ALLOW", label: "may" },
            { value: "DENY", label: "may not" },
          ]}
          value={rule.permission}
          onChange={(permission) => change({ permission })}
        />
      </Stack>
      <NativeSelect label="Type of resource" data={types} value={rule.resourceType} onChange={(event) => changeType(event.currentTarget.value)} />
      <NativeSelect
        label="Operation"
        data={words.operations[rule.resourceType] ?? []}
        value={rule.operation}
        onChange={(event) => change({ operation: event.currentTarget.value })}
      />
      {!isCluster && (
        <>
          <NativeSelect label="Pattern" data={words.patternTypes} value={rule.patternType} onChange={(event) => change({ patternType: event.currentTarget.value })} />
          <TextInput
            label="Name of the resource"
            description="With the pattern LITERAL, * is all of them."
            placeholder="orders"
            required
            value={rule.resourceName}
            onChange={(event) => change({ resourceName: event.currentTarget.value })}
          />
        </>
      )}
      <TextInput label="Host" description="An address; * is any." value={rule.host} onChange={(event) => change({ host: event.currentTarget.value })} />
    </FormDialog>
  );
}

function emptyRule(words: AccessWords, resourceType: string): Required<NewAcl> {
  return {
    principal: "",
    operation: usualOperation(words, resourceType),
    resourceType,
    resourceName: "",
    host: "*",
    permission: "ALLOW",
    patternType: words.patternTypes[0] ?? "LITERAL",
  };
}

/** Not the first of all, which is everything at once. */
function usualOperation(words: AccessWords, resourceType: string): string {
  const operations = words.operations[resourceType] ?? [];
  return operations.find((operation) => ["READ", "DESCRIBE"].includes(operation)) ?? operations[0] ?? "";
}
