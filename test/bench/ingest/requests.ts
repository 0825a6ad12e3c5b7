import { createHmac, randomUUID } from 'node:crypto';
import { getOrMake } from '../../../src/lib/get-or-make.ts';
import { newDeliveryId } from '../../../src/sandbox/made-up-events.ts';
import { SECRET } from '../../support/signed-events.ts';
import { PATH } from '../rivals/vf.ts';

/** Bytes of a body: the size of the service's meal events. */
const MEAL_BYTES = 1200;
const USERS = 10_000;
const TEAM = '00000000-0000-4000-8000-000000000001';

/** Whole HTTP requests, signed and serialised, one after the other. */
export class Requests {
  readonly #bytes: Buffer;
  readonly #starts: Uint32Array;
  readonly count: number;

  constructor(bytes: Buffer, starts: Uint32Array) {
    this.#bytes = bytes;
    this.#starts = starts;
    this.count = starts.length - 1;
  }

  /** A view; nothing is copied. */
  at(index: number): Buffer {
    return this.#bytes.subarray(this.#starts[index], this.#starts[index + 1]);
  }
}

/**
 * Signs `count` meal events with new ids. Signed here, once, so that the load itself costs little.
 * @param size bytes of a body
 */
export function makeRequests(count: number, size: number): Requests {
  const key = Buffer.from(SECRET.slice('whsec_'.length), 'base64');
  const starts = new Uint32Array(count + 1);
  const bytes = Buffer.allocUnsafe(count * (size + 512));
  const timestamp = String(Math.floor(Date.now() / 1000));
  let at = 0;
  for (let n = 0; n < count; n += 1) {
    starts[n] = at;
    const id = newDeliveryId();
    const body = mealBody(n, size);
    const signature = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64');
    const head =
      `POST ${PATH} HTTP/1.1\r\nhost: 127.0.0.1\r\nuser-agent: Svix-Webhooks/1.4\r\naccept: */*\r\n` +
      `content-type: application/json\r\nwebhook-id: ${id}\r\nwebhook-timestamp: ${timestamp}\r\n` +
      `webhook-signature: v1,${signature}\r\ncontent-length: ${body.length}\r\n\r\n`;
    at += bytes.write(head, at, 'latin1');
    at += body.copy(bytes, at);
  }
  starts[count] = at;
  return new Requests(bytes.subarray(0, at), starts);
}

/** A meal of exactly `size` bytes, with as many foods as there is room for; users at random. */
export function mealBody(n: number, size = MEAL_BYTES): Buffer {
  const user = `00000000-0000-4000-8000-${String(Math.floor(Math.random() * USERS)).padStart(12, '0')}`;
  const [front, middle, back] = mealText(n, user).split(/PAD|FOODS/) as [string, string, string];
  const foods = foodsBeyondMeal(size);
  const padding = size - front.length - middle.length - foods.length - back.length;
  return Buffer.from(`${front}${'x'.repeat(padding)}${middle}${foods}${back}`);
}

/** By size, made once. */
const madeFoods = new Map<number, string>();

/** As many more foods as a body of `size` has room for beside a usual meal. */
function foodsBeyondMeal(size: number): string {
  return getOrMake(madeFoods, size, () => {
    let text = '';
    for (let n = 0; text.length < size; n += 1) {
      const one = `,"Made-up food ${n}":${food(n)}`;
      if (text.length + one.length > size - MEAL_BYTES) break;
      text += one;
    }
    return text;
  });
}

function mealText(n: number, user: string): string {
  const at = new Date(Date.UTC(2026, 0, 1) + n * 60_000).toISOString();
  return (
    `{"event_type":"daily.data.meal.created","data":{"id":"${randomUUID()}","user_id":"${user}","name":"Made-up meal ${n}",` +
    `"timestamp":"${at}","created_at":"${at}","updated_at":"${at}","provider_id":"made-up-${n}","source_id":7,` +
    `"source":{"app_id":"made.up","device_id":"made-up","provider":"made_up","type":"app"},"note":"PAD","data":{` +
    `"Porridge, made up, 1 bowl":${food(n % 700)},"Coffee, black, 1 tbsp(s)":${food(n % 9)}FOODS}},` +
    `"team_id":"${TEAM}","user_id":"${user}","client_user_id":"made-up-client-${user.slice(-5)}"}`
  );
}

function food(kcal: number): string {
  return (
    `{"energy":{"unit":"kcal","value":${kcal}},"macros":{"carbs":${kcal / 8},"protein":3.25,"sugar":1.1,` +
    `"fats":{"total":0.4,"saturated":0.1}},"micros":{"minerals":{"sodium":${kcal % 50}}}}`
  );
}
