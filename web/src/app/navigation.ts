import { IconArrowsExchange, IconDatabase, IconGauge, IconLock, IconRoute, IconServer2, IconStack2, IconUsersGroup } from "@tabler/icons-react";

/** The pages of the side navigation, each with the key that opens it after `g`. */
export const NAVIGATION = [
  { to: "/", label: "Overview", key: "o", icon: IconGauge },
  { to: "/topics", label: "Topics", key: "t", icon: IconStack2 },
  { to: "/groups", label: "Consumer groups", key: "g", icon: IconUsersGroup },
  { to: "/transactions", label: "Transactions", key: "x", icon: IconArrowsExchange },
  { to: "/brokers", label: "Brokers", key: "b", icon: IconServer2 },
  { to: "/pipeline", label: "Data pipeline", key: "p", icon: IconRoute },
  { to: "/etcd", label: "Metadata", key: "e", icon: IconDatabase },
  { to: "/access", label: "Access", key: "a", icon: IconLock },
] as const;
