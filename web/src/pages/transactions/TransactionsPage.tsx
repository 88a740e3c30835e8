import { Stack } from "@mantine/core";

import { Page } from "../../components/Page";
import { HangingPanel } from "./HangingPanel";
import { TransactionsTable } from "./TransactionsTable";

export function TransactionsPage() {
  return (
    <Page title="Transactions" lead="Transactional ids with the state of their open or last transaction.">
      <Stack>
        <HangingPanel />
        <TransactionsTable />
      </Stack>
    </Page>
  );
}
