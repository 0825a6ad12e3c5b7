/** The part of the engine's interface that is used here; the types of Node have none of it. */
declare const WebAssembly: {
  validate(bytes: Uint8Array): boolean;
  Module: new (bytes: Uint8Array) => object;
  Instance: new (module: object) => { readonly exports: unknown };
};

export interface WithMemory {
  readonly memory: { readonly buffer: ArrayBuffer; grow(pages: number): number };
}

const PAGE = 64 * 1024;

/** What a module exports; null where the engine cannot run it, which may lack SIMD. */
export function exportsOf(module: Uint8Array): unknown {
  if (!WebAssembly.validate(module)) return null;
  return new WebAssembly.Instance(new WebAssembly.Module(module)).exports;
}

/** Makes the memory at least so large; views of it are to be made afterwards. */
export function growTo({ memory }: WithMemory, bytes: number): void {
  memory.grow(Math.max(0, Math.ceil((bytes - memory.buffer.byteLength) / PAGE)));
}
