import { createTheme, type MantineColorsTuple } from "@mantine/core";

const tide: MantineColorsTuple = [
  "#e6f8f6", "#cfeeea", "#a2ddd6", "#70cbc1", "#48bbaf", "#2aaea1", "#14968a", "#0b776e", "#086059", "#044842",
];

/** Dark greys with a blue tint, to match the side navigation. */
const dark: MantineColorsTuple = [
  "#d5dde3", "#b4c0c9", "#93a2ad", "#6c7c88", "#3c4a55", "#2b3843", "#1f2a33", "#17212a", "#101920", "#0b1319",
];

export const theme = createTheme({
  primaryColor: "tide",
  // White text has enough contrast on this shade in both schemes; Mantine picks a lighter one for links on dark.
  primaryShade: 7,
  colors: { tide, dark },
  defaultRadius: "md",
  cursorType: "pointer",
  respectReducedMotion: true,
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif',
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace',
  headings: { fontWeight: "600" },
  components: {
    Modal: { defaultProps: { centered: true, overlayProps: { backgroundOpacity: 0.45, blur: 2 } } },
    // The header of a dialog must not be a banner landmark.
    ModalHeader: { defaultProps: { role: "presentation" } },
    Tooltip: { defaultProps: { withArrow: true, openDelay: 300 } },
  },
});
