/** A canvas that writes down what it was told to draw: jsdom has none. */

export interface Stroke {
  color: string;
  points: [number, number][];
}

const nothing = () => ({ texts: [] as string[], strokes: [] as Stroke[], dots: [] as [number, number][] });

/** What is on the canvas now: each drawing begins with a clean one. */
export const drawn = nothing();

class NotedPath {
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
    clearRect: () => Object.assign(drawn, nothing()),
    fillText: (text: string) => drawn.texts.push(text),
    fill: (path?: NotedPath) => path && drawn.dots.push(...path.centers),
    stroke: (path?: NotedPath) => path && drawn.strokes.push({ color: String(state.strokeStyle), points: path.points }),
  };
  return new Proxy(state, { get: (_, name: string) => state[name] ?? (() => {}) });
}

HTMLCanvasElement.prototype.getContext = newContext as unknown as HTMLCanvasElement["getContext"];
globalThis.Path2D = NotedPath as unknown as typeof Path2D;
