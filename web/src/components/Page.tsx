import { Anchor, Breadcrumbs, Group, Stack, Text, Title } from "@mantine/core";
import { type ReactNode, useEffect } from "react";
import { Link } from "react-router";

interface Crumb {
  label: string;
  to: string;
}

interface Props {
  title: string;
  /** Where this page belongs, from the outside in; the page itself is not among them. */
  crumbs?: Crumb[];
  /** A mark beside the title, such as a StateBadge. */
  mark?: ReactNode;
  lead?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}

/** What every page begins with; the title is that of the browser's tab as well. */
export function Page({ title, crumbs = [], mark, lead, actions, children }: Props) {
  useEffect(() => {
    document.title = `${title} · Kafscale`;
  }, [title]);

  return (
    <Stack gap="lg">
      <div>
        {crumbs.length > 0 && (
          <nav aria-label="Where this page belongs">
            <Breadcrumbs mb={4} separatorMargin={6}>
              {crumbs.map(({ label, to }) => (
                <Anchor key={to} component={Link} to={to} size="sm">
                  {label}
                </Anchor>
              ))}
            </Breadcrumbs>
          </nav>
        )}
        <Group justify="space-between" align="center" gap="sm">
          <Group gap="sm" style={{ minWidth: 0 }}>
            <Title order={1} size="h2" style={{ overflowWrap: "anywhere" }}>
              {title}
            </Title>
            {mark}
          </Group>
          {actions && <Group gap="xs">{actions}</Group>}
        </Group>
        {lead && (
          <Text c="dimmed" size="sm" mt={4} component="div">
            {lead}
          </Text>
        )}
      </div>
      {children}
    </Stack>
  );
}
