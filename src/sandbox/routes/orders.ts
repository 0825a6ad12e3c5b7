import { z } from 'zod';
import { pageOf, PAGING, uuid, Refusal } from '../check.ts';
import { team, type Call, type Operation } from '../operation.ts';
import { orderJson, INTERPRETATIONS, type Order } from '../order.ts';
import { randomOf } from '../seeded.ts';
import type { Team } from '../teams.ts';

/** Characters, not UTF-16 units. */
const NOTES = z
  .string()
  .refine((text) => Array.from(text).length <= 1000, 'String should have at most 1000 characters');
const NEW_ORDER = z.object({
  user_id: uuid,
  lab_test_id: uuid,
  lab_account_id: uuid.nullish(),
  clinical_notes: NOTES.nullish(),
  update_reason: z.string().nullish(),
});
const LIST = z.object({ ...PAGING, interpretation: z.enum(INTERPRETATIONS).optional() });
const SLOTS_DAYS = 14;

export const orderOperations: readonly Operation[] = [
  team('post', '/v3/order/create', 'Place an order; one x-idempotency-key, one order', (call) =>
    place(call, 'created'),
  ),
  team('post', '/v3/order/import', 'Import an order; pending lab accounts may be named too', (call) =>
    place(call, 'imported'),
  ),
  team('get', '/orders', 'Orders, by interpretation', ({ world, bearer, query }) => {
    const { interpretation, ...paging } = query(LIST);
    const found = world.orders
      .list(bearer.id)
      .filter((order) => interpretation === undefined || order.interpretation === interpretation);
    return pageOf(
      'orders',
      found.map((order) => orderJson(order, world.labs)),
      paging,
    );
  }),
  team(
    'post',
    '/v3/order/phlebotomy/appointment/availability',
    'Fourteen days of appointment slots',
    ({ world, query }) => {
      const { start_date } = query(z.object({ start_date: z.iso.date() }));
      const random = randomOf(world.options.seed, 'slots', start_date);
      const slots = Array.from({ length: SLOTS_DAYS }, (_, n) => {
        const date = new Date(Date.parse(start_date) + n * 86_400_000).toISOString().slice(0, 10);
        const starts = [9, 11, 14].filter(() => random() < 0.8);
        return { date, slots: starts.map((hour) => slotOf(date, hour)) };
      });
      return { timezone: 'UTC', slots };
    },
  ),
];

function place({ world, bearer, request, body }: Call<Team>, way: Order['way']): object {
  const { user_id, lab_test_id, lab_account_id, clinical_notes, update_reason } = body(NEW_ORDER);
  const header = request.headers['x-idempotency-key'];
  const key = typeof header === 'string' ? header : null;
  const asked = JSON.stringify([way, request.body]);
  const before = world.orders.repeated(bearer, key, asked);
  if (before !== null)
    return { order: orderJson(before, world.labs), status: 'success', message: 'order exists' };
  const test = world.labs.tests.find(({ id }) => id === lab_test_id);
  if (test === undefined) throw new Refusal(404, 'Lab test not found');
  const wanted = {
    user: world.users.get(bearer.id, user_id),
    test,
    accountId: lab_account_id ?? null,
    clinicalNotes: clinical_notes ?? null,
    updateReason: update_reason ?? null,
    way,
  };
  const order = world.orders.place(bearer, wanted, key, asked);
  return { order: orderJson(order, world.labs), status: 'success', message: 'order created' };
}

function slotOf(date: string, hour: number): object {
  const at = (h: number): string => `${date}T${String(h).padStart(2, '0')}:00:00+00:00`;
  const priority = { is_priority: hour === 9 };
  return { booking_key: `made-up-${date}-${hour}`, start: at(hour), end: at(hour + 2), ...priority };
}
