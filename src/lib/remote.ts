type Method = (...args: never[]) => unknown;

/** The methods of a T in another thread, and of its parts, as asynchronous calls. Arguments and results are cloned. */
export type Remote<T> = {
  readonly [K in keyof T]: T[K] extends (...args: infer Args) => infer Result
    ? (...args: Args) => Promise<Awaited<Result>>
    : Remote<T[K]>;
};

type MethodsOf<T> = { [K in keyof T & string]: T[K] extends Method ? K : never }[keyof T & string];

/** A method of a T: `method` or `part.method`. */
export type Operation<T> =
  | MethodsOf<T>
  | { [K in keyof T & string]: T[K] extends object ? `${K}.${MethodsOf<T[K]>}` : never }[keyof T & string];

export interface Call {
  /** An `Operation`. */
  readonly op: string;
  readonly args: readonly unknown[];
}

/** @param call performs a call in the other thread */
export function remoteOf<T>(call: (call: Call) => Promise<unknown>, op = ''): Remote<T> {
  return new Proxy(() => undefined, {
    get: (_, name) => remoteOf(call, op === '' ? String(name) : `${op}.${String(name)}`),
    apply: (_, __, args: readonly unknown[]) => call({ op, args }),
  }) as unknown as Remote<T>;
}

/** Performs a call on the target. @throws what the method throws */
export function perform(target: object, { op, args }: Call): unknown {
  const path = op.split('.');
  const name = path.pop() ?? '';
  let owner: unknown = target;
  for (const part of path) owner = Reflect.get(Object(owner) as object, part);
  return Reflect.apply(Reflect.get(Object(owner) as object, name) as Method, owner, args);
}

/** The buffers under the key `records` of the values: they are transferred instead of cloned. */
export function transferable(values: readonly unknown[]): ArrayBuffer[] {
  return values.flatMap((value) => {
    const { records } = Object(value) as { readonly records?: unknown };
    return records instanceof Uint8Array && records.buffer instanceof ArrayBuffer ? [records.buffer] : [];
  });
}
