type Method = (...args: never[]) => unknown;

/** A T in another thread: the methods of it and of its parts, each answering later. What they take and give is cloned. */
export type Remote<T> = {
  readonly [K in keyof T]: T[K] extends (...args: infer Args) => infer Result
    ? (...args: Args) => Promise<Awaited<Result>>
    : Remote<T[K]>;
};

type MethodsOf<T> = { [K in keyof T & string]: T[K] extends Method ? K : never }[keyof T & string];

/** What can be called on a T: `method`, or `part.method`. */
export type Operation<T> =
  | MethodsOf<T>
  | { [K in keyof T & string]: T[K] extends object ? `${K}.${MethodsOf<T[K]>}` : never }[keyof T & string];

export interface Call {
  /** An `Operation`. */
  readonly op: string;
  readonly args: readonly unknown[];
}

/** @param call hands a call over, and settles with its answer */
export function remoteOf<T>(call: (call: Call) => Promise<unknown>, op = ''): Remote<T> {
  return new Proxy(() => undefined, {
    get: (_, name) => remoteOf(call, op === '' ? String(name) : `${op}.${String(name)}`),
    apply: (_, __, args: readonly unknown[]) => call({ op, args }),
  }) as unknown as Remote<T>;
}

/** Carries out a call. @throws what the method throws */
export function perform(target: object, { op, args }: Call): unknown {
  const path = op.split('.');
  const name = path.pop() ?? '';
  let owner: unknown = target;
  for (const part of path) owner = Reflect.get(Object(owner) as object, part);
  return Reflect.apply(Reflect.get(Object(owner) as object, name) as Method, owner, args);
}

/** Buffers that a value has for itself alone, under `records`: they are handed over, and not copied. */
export function transferable(values: readonly unknown[]): ArrayBuffer[] {
  return values.flatMap((value) => {
    const { records } = Object(value) as { readonly records?: unknown };
    return records instanceof Uint8Array && records.buffer instanceof ArrayBuffer ? [records.buffer] : [];
  });
}
