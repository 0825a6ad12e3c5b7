import { randomOf, uuidOf, type Name } from './seeded.ts';

/** The four central laboratories; numbered from 1. */
export const LABS = ['made_up_lab_1', 'made_up_lab_2', 'made_up_lab_3', 'made_up_lab_4'] as const;

/** Miles. */
export const RADII = ['10', '20', '25', '50', '100'] as const;

export interface LabTest {
  readonly id: string;
  readonly name: string;
  readonly lab: string;
  readonly markerIds: readonly number[];
  /** Days until results are there. */
  readonly usualDays: number;
  readonly longestDays: number;
  /** Made for an order of single markers. */
  readonly isForOneOrder?: true;
}

export interface LabAccount {
  readonly id: string;
  readonly lab: string;
  readonly status: 'active' | 'pending' | 'suspended';
  readonly teamIds: readonly string[];
  readonly orgId: string;
  readonly notes: string | null;
}

export interface Marker {
  readonly id: number;
  readonly lab_id: number;
  readonly provider_id: string;
  readonly [field: string]: unknown;
}

const MARKERS = 240;
const ACCOUNTS: readonly (Pick<LabAccount, 'lab' | 'status'> & { readonly notes?: string })[] = [
  { lab: LABS[0], status: 'active', notes: 'Made-up default note of the account.' },
  { lab: LABS[1], status: 'active' },
  { lab: LABS[2], status: 'active' },
  { lab: LABS[3], status: 'active' },
  { lab: LABS[0], status: 'pending' },
  { lab: LABS[1], status: 'suspended' },
  // A second account of each lab, for corrected orders.
  ...LABS.map((lab) => ({ lab, status: 'active' }) as const),
];

/** Made-up markers, order sets and accounts, from the seed. */
export class Labs {
  readonly markers: readonly Marker[];
  readonly tests: readonly LabTest[];
  readonly accounts: readonly LabAccount[];

  constructor(seed: Name, teamId: string, orgId: string) {
    this.markers = Array.from({ length: MARKERS }, (_, index) => marker(index + 1));
    this.tests = Array.from({ length: 8 }, (_, index) => ({
      id: uuidOf(seed, 'lab test', index),
      name: `Made-up panel ${index + 1}`,
      lab: LABS[index % LABS.length] ?? LABS[0],
      markerIds: Array.from({ length: 30 }, (__, n) => 1 + (index % LABS.length) + LABS.length * n),
      usualDays: 3,
      longestDays: 7 + index,
    }));
    this.accounts = ACCOUNTS.map(({ lab, status, notes = null }, n) => {
      return { id: uuidOf(seed, 'lab account', n + 1), lab, status, notes, teamIds: [teamId], orgId };
    });
  }

  accountsOf(teamId: string): LabAccount[] {
    return this.accounts.filter(({ teamIds }) => teamIds.includes(teamId));
  }
}

/** @param most number of markers shown */
export function labTestJson(test: LabTest, { markers }: Labs, most = Infinity): object {
  const { id, name, lab, markerIds, usualDays, longestDays } = test;
  const number = LABS.findIndex((one) => one === lab) + 1;
  return {
    id,
    slug: slugOf(name),
    name,
    sample_type: 'serum',
    method: 'testkit',
    price: 40 + number + 0.5,
    is_active: true,
    status: 'active',
    fasting: number === 1,
    lab: {
      id: number,
      slug: lab,
      name: `Made-up laboratory ${number}`,
      first_line_address: `${number} Made-up Street`,
      city: 'Madeup',
      zipcode: '00000',
      collection_methods: ['testkit'],
      sample_types: ['serum'],
      logo_url: null,
    },
    markers: markers
      .filter((one) => markerIds.includes(one.id))
      .slice(0, most)
      .map((one) => ({ ...one, expected_results: undefined })),
    is_delegated: false,
    auto_generated: test.isForOneOrder === true,
    has_collection_instructions: true,
    common_tat_days: usualDays,
    worst_case_tat_days: longestDays,
  };
}

function slugOf(name: string): string {
  return name.toLowerCase().replaceAll(' ', '-');
}

export function labAccountJson(account: LabAccount): object {
  return {
    id: account.id,
    lab: account.lab,
    status: account.status,
    delegated_flow: 'order_delegated',
    provider_account_id: `made-up-${account.id.slice(0, 8)}`,
    allowed_billing: { client_bill: ['MA'], patient_bill: [] },
    team_id_allowlist: account.teamIds,
    org_id: account.orgId,
    account_name: `Made-up account at ${account.lab}`,
    default_clinical_notes: account.notes ?? '',
    business_units: ['made-up unit'],
  };
}

function marker(id: number): Marker {
  const lab_id = 1 + ((id - 1) % LABS.length);
  const name = `Made-up marker ${id}`;
  const slug = slugOf(name);
  const provider_id = `M${String(id).padStart(4, '0')}`;
  const unit = id % 7 === 0 ? null : 'mg/dL';
  const loinc = { id: 9000 + id, name, slug, code: `${90_000 + id}-${id % 10}`, unit };
  return {
    id,
    name,
    slug,
    description: `A made-up measurement, number ${id}`,
    lab_id,
    provider_id,
    type: 'biomarker',
    unit,
    price: id % 5 === 0 ? 'N/A' : '12.50',
    aoe: { questions: [] },
    a_la_carte_enabled: id % 2 === 0,
    common_tat_days: 2,
    worst_case_tat_days: 5,
    is_orderable: true,
    expected_results: [{ id: 5000 + id, name, slug, lab_id, provider_id, required: true, loinc }],
  };
}

/** Coverage of an area: more centers within a larger radius; one zip code in eight is not served at home. */
export function areaInfo(seed: Name, zipCode: string, radius: string, labs: readonly string[]): object {
  const served = randomOf(seed, 'area', zipCode)() >= 0.125;
  return {
    zip_code: zipCode,
    phlebotomy: {
      is_served: served,
      providers: served
        ? [
            { name: 'made_up_phlebotomy_1', ...tierOf('appointment-ready') },
            { name: 'made_up_phlebotomy_2', ...tierOf('appointment-request') },
          ]
        : [],
    },
    central_labs: Object.fromEntries(labs.map((lab) => [lab, coverageOf(seed, zipCode, radius, lab)])),
  };
}

/** The specification has `tier`, and clients read `service_types`. */
function tierOf(tier: string): object {
  return { tier: [tier], service_types: [tier] };
}

const BILLS = { supported_bill_types: ['client_bill', 'patient_bill'] };

function coverageOf(seed: Name, zipCode: string, radius: string, lab: string) {
  const density = randomOf(seed, 'centers', zipCode, lab)() / 4;
  const within_radius = Math.floor(density * Number(radius));
  const capabilities = density > 0.1 ? ['stat'] : [];
  const centers = { appointment_with_service: true, within_radius, radius, capabilities };
  return { patient_service_centers: centers, ...BILLS, lab_id: LABS.findIndex((one) => one === lab) + 1 };
}

/** The patient service centers that the area information counts. */
export function centersOf(seed: Name, zipCode: string, radius: string, lab: string): object {
  const { patient_service_centers: near, lab_id } = coverageOf(seed, zipCode, radius, lab);
  const place = { state: 'ZZ', city: 'Madeup', zip_code: zipCode };
  const all = Array.from({ length: near.within_radius }, (_, n) => ({
    metadata: { name: `Made-up center ${n}`, first_line: `${n} Made-up Street`, second_line: null, ...place },
    distance: n,
    site_code: `MU${n}`,
    ...BILLS,
    location: { lng: -70 - n / 100, lat: 42 },
    capabilities: near.capabilities,
  }));
  return { lab_id, slug: lab, patient_service_centers: all };
}
