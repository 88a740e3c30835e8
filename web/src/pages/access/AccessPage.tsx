/** ACLs, SCRAM users and client quotas. */

import { Tabs } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useSearchParams } from "react-router";

import { api } from "../../api/client";
import type { AccessOptions, Acls, Quotas, Users } from "../../api/contract";
import { Loaded } from "../../components/Loaded";
import { Page } from "../../components/Page";
import { AclsTable } from "./AclsTable";
import { QuotasTable } from "./QuotasTable";
import { UsersTable } from "./UsersTable";

const PARTS = ["acls", "users", "quotas"] as const;

export function AccessPage() {
  const [params, setParams] = useSearchParams();
  const part = PARTS.find((each) => each === params.get("part")) ?? "acls";
  const options = useQuery({ queryKey: ["access-options"], queryFn: ({ signal }) => api.get<AccessOptions>("/access/options", { signal }) });
  const acls = useQuery({ queryKey: ["acls"], queryFn: ({ signal }) => api.get<Acls>("/acls", { signal }) });
  const users = useQuery({ queryKey: ["users"], queryFn: ({ signal }) => api.get<Users>("/users", { signal }) });
  const quotas = useQuery({ queryKey: ["quotas"], queryFn: ({ signal }) => api.get<Quotas>("/quotas", { signal }) });

  return (
    <Page title="Access" lead="ACLs, SCRAM users and client quotas.">
      <Tabs value={part} onChange={(chosen) => setParams(chosen === null || chosen === "acls" ? {} : { part: chosen })} keepMounted={false}>
        <Tabs.List mb="md">
          <Tabs.Tab value="acls">ACLs</Tabs.Tab>
          <Tabs.Tab value="users">Users</Tabs.Tab>
          <Tabs.Tab value="quotas">Quotas</Tabs.Tab>
        </Tabs.List>
        <Loaded query={options}>
          {(formOptions) => (
            <>
              <Tabs.Panel value="acls">
                <Loaded query={acls}>{(data) => <AclsTable acls={data} options={formOptions} />}</Loaded>
              </Tabs.Panel>
              <Tabs.Panel value="users">
                <Loaded query={users}>{(data) => <UsersTable users={data} options={formOptions} />}</Loaded>
              </Tabs.Panel>
              <Tabs.Panel value="quotas">
                <Loaded query={quotas}>{(data) => <QuotasTable quotas={data} options={formOptions} />}</Loaded>
              </Tabs.Panel>
            </>
          )}
        </Loaded>
      </Tabs>
    </Page>
  );
}
