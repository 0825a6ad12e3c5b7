import { DAY_MS, dayOf } from './made-up-health.ts';
import { type LabAccount, type LabTest, labTestJson, type Labs } from './made-up-labs.ts';
import { type User, hasInsurance, personOf } from './users.ts';
import { uuidOf } from './seeded.ts';

export const INTERPRETATIONS = ['normal', 'abnormal', 'critical'] as const;

export interface Order {
  readonly id: string;
  readonly number: number;
  readonly user: User;
  readonly test: LabTest;
  readonly account: LabAccount;
  readonly notes: string | null;
  readonly way: 'created' | 'imported';
  readonly origin: 'initial' | 'recreation';
  readonly createdAt: string;
  status: string;
  interpretation: string | null;
  /** Its statuses, oldest first. */
  events: readonly { readonly status: string; readonly at: string }[];
  /** The idempotency key of the request. */
  readonly key: string | null;
  /** The request. */
  readonly asked: string;
  /** Index in the course. */
  step: number;
}

/** An order in answers and events. */
export function orderJson(order: Order, labs: Labs): object {
  const { id, number, user, test, account, notes, status, interpretation, origin, createdAt } = order;
  const { address: home, ...person } = personOf(user);
  const { zip_code: _, ...street } = home;
  const events = order.events.map(({ status: passed, at }, n) => {
    const status_detail = passed.includes('.problem_') ? 'fulfillment_error' : null;
    return { id: number * 100 + n, created_at: at, status: passed, status_detail };
  });
  const last = events.at(-1);
  const updatedAt = last?.created_at ?? createdAt;
  const address = {
    receiver_name: `${person.first_name} ${person.last_name}`,
    ...street,
    phone_number: person.phone_number,
  };
  const low = status.split('.').at(-1);
  const lowLevel = { low_level_status: low, low_level_status_created_at: updatedAt };
  const isOver = status.startsWith('completed.');
  return {
    id,
    team_id: user.teamId,
    user_id: user.id,
    patient_details: { ...person, dob: `${person.dob}T00:00:00+00:00` },
    patient_address: { ...address, access_notes: null },
    lab_test: labTestJson(test, labs, SHOWN_MARKERS),
    lab_account_id: account.id,
    details: {
      type: 'testkit',
      data: { id: uuidOf('order details', id), shipment: null, created_at: createdAt, updated_at: updatedAt },
    },
    sample_id: order.step === 0 ? null : `made-up-sample-${number}`,
    notes: order.way === 'imported' ? 'Imported.' : null,
    clinical_notes: notes,
    created_at: createdAt,
    updated_at: updatedAt,
    events,
    status,
    low_level_status: low,
    last_event: last ?? null,
    physician: { first_name: 'Made', last_name: 'Up', npi: '0000000000' },
    health_insurance_id: hasInsurance(user) ? uuidOf('insurance', user.id) : null,
    requisition_form_url: order.step === 0 ? null : `https://made-up.invalid/requisitions/${id}.pdf`,
    priority: false,
    shipping_details: address,
    activate_by: dayAfter(createdAt, 180),
    passthrough: number % 2 === 0 ? `made-up-${number}` : null,
    billing_type: 'client_bill',
    icd_codes: ['Z00.00'],
    has_abn: false,
    interpretation,
    has_missing_results: isOver ? false : low === 'partial_results' ? true : null,
    expected_result_by_date: dayAfter(createdAt, test.usualDays),
    worst_case_result_by_date: dayAfter(createdAt, test.longestDays),
    origin,
    order_transaction: {
      id: uuidOf('order transaction', id),
      status: isOver ? 'completed' : low === 'cancelled' ? 'cancelled' : 'active',
      orders: [{ id, ...lowLevel, origin, created_at: createdAt, updated_at: updatedAt }],
    },
  };
}

/** Only the first markers, as whole panels would fill every event. */
const SHOWN_MARKERS = 3;

function dayAfter(time: string, days: number): string {
  return dayOf(Date.parse(time) + days * DAY_MS);
}
