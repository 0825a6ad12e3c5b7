/** The part of the engine's interface that is used here; Node's types lack it. */
declare const WebAssembly: {
  validate(bytes: Uint8Array): boolean;
  Module: new (bytes: Uint8Array) => object;
  Instance: new (module: object) => { readonly exports: unknown };
};

export interface WithMemory {
  readonly memory: { readonly buffer: ArrayBuffer; grow(pages: number): number };
}

const PAGE = 64 * 1024;

/** The exports of a module; null when the engine cannot run it, for example without SIMD. */
export function exportsOf(module: Uint8Array): unknown {
  if (!WebAssembly.validate(module)) return null;
  return new WebAssembly.Instance(new WebAssembly.Module(module)).exports;
}

/** Grows the memory to at least so many bytes. Existing views of it become invalid. */
export function growTo({ memory }: WithMemory, bytes: number): void {
  memory.grow(Math.max(0, Math.ceil((bytes - memory.buffer.byteLength) / PAGE)));
}
