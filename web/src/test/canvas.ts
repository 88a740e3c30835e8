/** A canvas that records what is drawn; happy-dom has no canvas. */

export interface Stroke {
  color: string;
  points: [number, number][];
}

const emptyDrawing = () => ({ texts: [] as string[], strokes: [] as Stroke[], dots: [] as [number, number][] });

/** The current content of the canvas; every drawing starts with clearRect. */
export const drawn = emptyDrawing();

class RecordedPath {
  readonly points: [number, number][] = [];
  readonly centers: [number, number][] = [];
  moveTo(x: number, y: number) {
    this.points.push([x, y]);
  }
  lineTo(x: number, y: number) {
    this.points.push([x, y]);
  }
  arc(x: number, y: number) {
    this.centers.push([x, y]);
  }
  rect() {}
  closePath() {}
}

function newContext() {
  const state: Record<string, unknown> = {
    clearRect: () => Object.assign(drawn, emptyDrawing()),
    fillText: (text: string) => drawn.texts.push(text),
    fill: (path?: RecordedPath) => path && drawn.dots.push(...path.centers),
    stroke: (path?: RecordedPath) => path && drawn.strokes.push({ color: String(state.strokeStyle), points: path.points }),
  };
  return new Proxy(state, { get: (_, name: string) => state[name] ?? (() => {}) });
}

HTMLCanvasElement.prototype.getContext = newContext as unknown as HTMLCanvasElement["getContext"];
globalThis.Path2D = RecordedPath as unknown as typeof Path2D;
