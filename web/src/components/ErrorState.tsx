import { Alert, Button, Text } from "@mantine/core";
import { IconAlertTriangle } from "@tabler/icons-react";

import { ApiError } from "../api/client";

export function errorMessage(error: unknown): string {
  if (error instanceof ApiError) return error.message;
  if (error instanceof Error && /dynamically imported module|module script/i.test(error.message)) {
    return "The page could not be loaded. The console may have been updated: reload the page.";
  }
  return error instanceof Error ? `Unexpected error: ${error.message}` : "Unexpected error.";
}

interface Props {
  error: unknown;
  onRetry?: () => void;
}

/** Shown instead of content that could not be loaded. */
export function ErrorState({ error, onRetry }: Props) {
  return (
    <Alert role="alert" variant="outline" color="red" icon={<IconAlertTriangle aria-hidden />} title="Request failed">
      <Text size="sm" style={{ overflowWrap: "anywhere" }}>
        {errorMessage(error)}
      </Text>
      {onRetry && (
        <Button mt="sm" size="xs" variant="default" onClick={onRetry}>
          Try again
        </Button>
      )}
    </Alert>
  );
}
