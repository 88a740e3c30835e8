import { Alert, Button, Text } from "@mantine/core";
import { IconAlertTriangle } from "@tabler/icons-react";

import { ApiError } from "../api/client";

export function sentenceOf(error: unknown): string {
  if (error instanceof ApiError) return error.message;
  if (error instanceof Error && /dynamically imported module|module script/i.test(error.message)) {
    return "This page could not be loaded. The console may have been updated: load it again.";
  }
  return error instanceof Error ? `Something went wrong in the page: ${error.message}` : "Something went wrong in the page.";
}

interface Props {
  error: unknown;
  onRetry?: () => void;
}

/** In the place of what could not be shown. */
export function ErrorState({ error, onRetry }: Props) {
  return (
    <Alert role="alert" variant="outline" color="red" icon={<IconAlertTriangle aria-hidden />} title="This did not work">
      <Text size="sm" style={{ overflowWrap: "anywhere" }}>
        {sentenceOf(error)}
      </Text>
      {onRetry && (
        <Button mt="sm" size="xs" variant="default" onClick={onRetry}>
          Try again
        </Button>
      )}
    </Alert>
  );
}
