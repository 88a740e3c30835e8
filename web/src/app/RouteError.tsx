import { Anchor, Center } from "@mantine/core";
import { Link, useLocation, useRouteError } from "react-router";

import { EmptyState } from "../components/EmptyState";
import { ErrorState } from "../components/ErrorState";
import { Page } from "../components/Page";

export function RouteError() {
  const error = useRouteError();
  return (
    <Center mih="60vh">
      <ErrorState error={error} onRetry={() => window.location.reload()} />
    </Center>
  );
}

export function NotFound() {
  const { pathname } = useLocation();
  return (
    <Page title="Not found">
      <EmptyState title={`Page ${pathname} not found.`}>
        <Anchor component={Link} to="/">
          Go to Overview
        </Anchor>
      </EmptyState>
    </Page>
  );
}
