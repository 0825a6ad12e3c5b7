import { onTestFinished, expect } from 'vitest';
import { Places } from '../../src/archive/places.ts';
import { verifyArchive } from '../../src/archive/verify.ts';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { openStore } from '../../src/storage/open.ts';
import { storageSettings, type Emulator } from '../support/object-stores/emulators.ts';
import { startFaultProxy } from '../support/object-stores/fault-proxy.ts';
import { Place } from '../support/place.ts';
import { postSigned } from '../support/signed-events.ts';

/** Secrets of a config have to come from the environment. */
export function inEnvironment(settings: object): {
  readonly storage: object;
  readonly env: Record<string, string>;
} {
  const env: Record<string, string> = {};
  const text = JSON.stringify(settings, (key, value: unknown) => {
    if (typeof value !== 'string' || !/key|secret|token|connection/i.test(key)) return value;
    env[`STORE_${key}`] = value;
    return `\${STORE_${key}}`;
  });
  return { storage: JSON.parse(text) as object, env };
}

/** Sends one after the other, again and again until each is answered: only then does it count. */
export class Sender {
  readonly acknowledged: string[] = [];
  url = '';
  #stopped = false;
  #n = 0;
  readonly #padding: string;
  readonly #mayContinue: () => boolean;

  /**
   * @param bytes of each event, at least
   * @param mayContinue whether more may be sent; asked before each event
   */
  constructor(bytes = 0, mayContinue = () => true) {
    this.#padding = 'x'.repeat(bytes);
    this.#mayContinue = mayContinue;
  }

  async lane(): Promise<void> {
    while (!this.#stopped) {
      if (!this.#mayContinue()) {
        await new Promise((resolve) => setTimeout(resolve, 10));
        continue;
      }
      const made = madeUpEvent((this.#n += 1));
      const { id } = made;
      const body = padded(made.body, this.#padding);
      while (!this.#stopped) {
        const status = await postSigned(this.url, body, { id }).then(
          (answer) => answer.status,
          () => 0,
        );
        if (status === 202 || status === 200) {
          this.acknowledged.push(id);
          break;
        }
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
  }

  stop(): void {
    this.#stopped = true;
  }
}

/** The same with one member more; as it was where there is nothing to add. */
function padded(body: Buffer, padding: string): Buffer {
  if (padding === '') return body;
  return Buffer.concat([body.subarray(0, -1), Buffer.from(`,"padding":"${padding}"}`)]);
}

/** A place with a sink into a bucket of its own, reached through a proxy. */
export async function scene(
  emulator: Emulator,
  name: string,
  more: object,
  storageKeys: object = {},
  moreEnv: Readonly<Record<string, string>> = {},
) {
  const proxy = await startFaultProxy(emulator.url);
  onTestFinished(() => proxy.stop());
  const url = `${await emulator.bucket(name)}/archive`;
  const { storage, env } = inEnvironment({ ...emulator.settings(proxy.url), ...storageKeys });
  const archive = { type: 'files', path: url, rotate: { bytes: '16KiB', every: '1s' }, ...more };
  const place = await Place.make({ storage, sinks: { archive } }, { ...env, ...moreEnv });
  const store = await openStore(url, storageSettings(emulator.settings()));
  onTestFinished(() => store.close());
  return { proxy, place, url, store };
}

export async function expectVerified(url: string, emulator: Emulator): Promise<void> {
  const places = new Places(storageSettings(emulator.settings()));
  expect((await verifyArchive(url, { places })).differences).toEqual([]);
  await places.close();
}
