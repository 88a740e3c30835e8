import { createTheme, type MantineColorsTuple } from "@mantine/core";

const tide: MantineColorsTuple = [
  "#e6f8f6", "#cfeeea", "#a2ddd6", "#70cbc1", "#48bbaf", "#2aaea1", "#14968a", "#0b776e", "#086059", "#044842",
];

/** The dark greys lean to blue, so that pages and the side navigation are of one family. */
const dark: MantineColorsTuple = [
  "#d5dde3", "#b4c0c9", "#93a2ad", "#6c7c88", "#3c4a55", "#2b3843", "#1f2a33", "#17212a", "#101920", "#0b1319",
];

export const theme = createTheme({
  primaryColor: "tide",
  // White on it can be read in both schemes; links take a lighter shade on dark by themselves.
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
    // A header of a dialog is not the banner of the page.
    ModalHeader: { defaultProps: { role: "presentation" } },
    Tooltip: { defaultProps: { withArrow: true, openDelay: 300 } },
  },
});
