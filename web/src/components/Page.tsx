import { Anchor, Breadcrumbs, Group, Stack, Text, Title } from "@mantine/core";
import { type ReactNode, useEffect } from "react";
import { Link } from "react-router";

interface Crumb {
  label: string;
  to: string;
}

interface Props {
  title: string;
  /** Breadcrumbs, outermost first, without the page itself. */
  crumbs?: Crumb[];
  /** Shown next to the title, such as a StateBadge. */
  badge?: ReactNode;
  lead?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}

/** The header of every page. The title is also the title of the browser tab. */
export function Page({ title, crumbs = [], badge, lead, actions, children }: Props) {
  useEffect(() => {
    document.title = `${title} · Kafscale`;
  }, [title]);

  return (
    <Stack gap="lg">
      <div>
        {crumbs.length > 0 && (
          <nav aria-label="Breadcrumbs">
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
            {badge}
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
