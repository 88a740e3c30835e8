/** The layout around every page after login: header, navigation and content. */
import { ActionIcon, AppShell, Burger, Group, Loader, Text, Tooltip, useComputedColorScheme, useMantineColorScheme } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconKeyboard, IconLogout, IconMoon, IconSun } from "@tabler/icons-react";
import { Suspense, useEffect } from "react";
import { Navigate, NavLink, Outlet, useLocation, useNavigation } from "react-router";

import { notifyError } from "../components/notify";
import { KeyboardShortcuts } from "./KeyboardShortcuts";
import { LiveIndicator } from "./LiveIndicator";
import { LiveProvider } from "./live";
import { NAVIGATION } from "./navigation";
import { useSession } from "./session";
import classes from "./Shell.module.css";

export function Shell() {
  const { session } = useSession();
  const location = useLocation();
  if (session.username === null) return <Navigate to="/login" replace state={{ from: location.pathname + location.search }} />;
  return (
    <LiveProvider>
      <Layout />
    </LiveProvider>
  );
}

function Layout() {
  const [isOpen, { toggle, close }] = useDisclosure(false);
  const { pathname } = useLocation();
  useEffect(() => {
    close();
    window.scrollTo(0, 0);
  }, [pathname, close]);

  return (
    <AppShell navbar={{ width: 232, breakpoint: "sm", collapsed: { mobile: !isOpen } }} header={{ height: 52 }} padding={{ base: "md", md: "xl" }} layout="alt">
      <a href="#content" className="ks-skip">
        Skip to content
      </a>
      <AppShell.Header className={classes.header} px="md">
        <Group h="100%" justify="space-between" wrap="nowrap">
          <Group gap="sm" wrap="nowrap">
            <Burger opened={isOpen} onClick={toggle} hiddenFrom="sm" size="sm" aria-label={isOpen ? "Close navigation" : "Open navigation"} aria-expanded={isOpen} />
            <LiveIndicator />
          </Group>
          <ColorSchemeSwitch />
        </Group>
      </AppShell.Header>
      <AppShell.Navbar className={classes.nav} p="md" aria-label="Pages" onKeyDown={(event) => event.key === "Escape" && close()}>
        <Group justify="space-between" align="flex-start" wrap="nowrap">
          <NavLink to="/" className={classes.brand}>
            <img src="/favicon.svg" alt="" width={28} height={28} />
            Kafscale
          </NavLink>
          <Burger opened onClick={close} hiddenFrom="sm" size="sm" color="#fff" aria-label="Close navigation" />
        </Group>
        <AppShell.Section grow>
          {NAVIGATION.map(({ to, label, icon: Icon }) => (
            <NavLink key={to} to={to} end={to === "/"} className={classes.link}>
              <Icon size={19} stroke={1.6} aria-hidden />
              {label}
            </NavLink>
          ))}
        </AppShell.Section>
        <NavbarFooter />
      </AppShell.Navbar>
      <AppShell.Main className={classes.main} id="content" tabIndex={-1}>
        <PageLoading />
        <Suspense fallback={<Loader aria-label="Loading page" />}>
          <Outlet />
        </Suspense>
      </AppShell.Main>
      <KeyboardShortcuts />
    </AppShell>
  );
}

/** Pages are loaded lazily; the previous page stays visible until the next one is loaded. */
function PageLoading() {
  const navigation = useNavigation();
  return (
    <span role="status" style={{ position: "absolute", right: 16 }}>
      {navigation.state === "loading" && <Loader size="xs" aria-label="Loading page" />}
    </span>
  );
}

function NavbarFooter() {
  const { session, logout } = useSession();
  return (
    <AppShell.Section className={classes.foot}>
      <Group justify="space-between" wrap="nowrap">
        <div style={{ minWidth: 0 }}>
          <Text size="sm" c="#fff" truncate title={session.username ?? undefined}>
            {session.username}
          </Text>
          <Text size="xs">Kafscale {session.version}</Text>
        </div>
        <Group gap={4} wrap="nowrap">
          <Tooltip label="Keyboard shortcuts (?)">
            <ActionIcon variant="subtle" aria-label="Show keyboard shortcuts" onClick={() => document.dispatchEvent(new KeyboardEvent("keydown", { key: "?" }))} visibleFrom="sm">
              <IconKeyboard size={18} />
            </ActionIcon>
          </Tooltip>
          <Tooltip label="Log out">
            <ActionIcon variant="subtle" aria-label="Log out" onClick={() => logout().catch(notifyError)}>
              <IconLogout size={18} />
            </ActionIcon>
          </Tooltip>
        </Group>
      </Group>
    </AppShell.Section>
  );
}

export function ColorSchemeSwitch() {
  const { setColorScheme } = useMantineColorScheme();
  const scheme = useComputedColorScheme("light");
  const next = scheme === "dark" ? "light" : "dark";
  return (
    <Tooltip label={`Switch to ${next} mode`}>
      <ActionIcon variant="subtle" color="gray" aria-label={`Switch to ${next} mode`} onClick={() => setColorScheme(next)}>
        {scheme === "dark" ? <IconSun size={19} /> : <IconMoon size={19} />}
      </ActionIcon>
    </Tooltip>
  );
}
