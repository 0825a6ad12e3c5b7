import { table } from './definition.ts';

const MARKER_EXPECTED_RESULTS = table({
  name: 'marker_expected_results',
  description: 'What results the markers give, one a row, with their LOINC codes.',
  key: ['marker_id', 'id'],
  columns: [
    { name: 'marker_id', type: 'integer', from: { parent: 'id' }, required: true, description: 'the marker' },
    { name: 'result_index', type: 'integer', from: { of: 'position' }, description: 'position, from 0' },
    { name: 'id', type: 'integer', from: 'id', required: true, description: 'identifier' },
    { name: 'name', type: 'text', from: 'name', description: 'name' },
    { name: 'slug', type: 'text', from: 'slug', description: 'short name' },
    { name: 'lab_id', type: 'integer', from: 'lab_id', description: 'the laboratory' },
    { name: 'provider_id', type: 'text', from: 'provider_id', description: 'identifier at the laboratory' },
    { name: 'loinc_id', type: 'integer', from: 'loinc.id', description: 'identifier of the LOINC entry' },
    { name: 'loinc_code', type: 'text', from: 'loinc.code', description: 'LOINC code' },
    { name: 'loinc_name', type: 'text', from: 'loinc.name', description: 'LOINC name' },
    { name: 'loinc_slug', type: 'text', from: 'loinc.slug', description: 'LOINC short name' },
    { name: 'loinc_unit', type: 'text', from: 'loinc.unit', description: 'unit of the result' },
  ],
});

export const MARKERS = table({
  name: 'markers',
  description: 'Lab markers, one a row.',
  key: ['id'],
  columns: [
    { name: 'id', type: 'integer', from: 'id', required: true, description: 'identifier' },
    { name: 'name', type: 'text', from: 'name', description: 'name' },
    { name: 'slug', type: 'text', from: 'slug', description: 'short name' },
    { name: 'description', type: 'text', from: 'description', description: 'description' },
    { name: 'lab_id', type: 'integer', from: 'lab_id', description: 'the laboratory' },
    { name: 'provider_id', type: 'text', from: 'provider_id', description: 'identifier at the laboratory' },
    { name: 'type', type: 'text', from: 'type', description: 'kind of marker, open list' },
    { name: 'unit', type: 'text', from: 'unit', description: 'unit of the results' },
    { name: 'price', type: 'text', from: 'price', description: 'a text: what is not a number can occur' },
  ],
  nested: [{ at: 'expected_results', each: 'array', table: MARKER_EXPECTED_RESULTS }],
});

export const LAB_ACCOUNTS = table({
  name: 'lab_accounts',
  description: 'Lab accounts of the team, one a row.',
  key: ['id'],
  columns: [
    { name: 'id', type: 'text', from: 'id', required: true, description: 'identifier, UUID' },
    { name: 'lab', type: 'text', from: 'lab', description: 'lab identifier' },
    { name: 'status', type: 'text', from: 'status', description: 'active, pending, suspended; open list' },
    { name: 'delegated_flow', type: 'text', from: 'delegated_flow', description: 'who handles the flow' },
    {
      name: 'provider_account_id',
      type: 'text',
      from: 'provider_account_id',
      description: 'identifier at the laboratory',
    },
    { name: 'account_name', type: 'text', from: 'account_name', description: 'name' },
    { name: 'org_id', type: 'text', from: 'org_id', description: 'organization, UUID' },
    {
      name: 'default_clinical_notes',
      type: 'text',
      from: 'default_clinical_notes',
      description: 'included on every order under the account',
    },
    { name: 'allowed_billing', type: 'json', from: 'allowed_billing', description: 'object as it came' },
    {
      name: 'team_id_allowlist',
      type: 'json',
      from: 'team_id_allowlist',
      description: 'array of team ids, UUIDs',
    },
    { name: 'business_units', type: 'json', from: 'business_units', description: 'array of texts' },
  ],
});

export const ORDERS = table({
  name: 'orders',
  description: 'Lab orders, one a row. Few of their fields are documented; the others are in `extra`.',
  key: ['id'],
  newest: 'updated_at',
  columns: [
    { name: 'id', type: 'text', from: 'id', required: true, description: 'identifier, UUID' },
    { name: 'team_id', type: 'text', from: 'team_id', description: 'team, UUID' },
    { name: 'user_id', type: 'text', from: 'user_id', description: 'user, UUID' },
    { name: 'status', type: 'text', from: 'status', description: 'order status, open list' },
    {
      name: 'interpretation',
      type: 'text',
      from: 'interpretation',
      description: 'normal, abnormal, critical; open list',
    },
    { name: 'lab_account_id', type: 'text', from: 'lab_account_id', description: 'lab account, UUID' },
    { name: 'created_at', type: 'timestamp', from: 'created_at', description: 'creation' },
    { name: 'updated_at', type: 'timestamp', from: 'updated_at', description: 'the newest version wins' },
  ],
});

const PARSING_JOB_RESULTS = table({
  name: 'parsing_job_results',
  description: 'Biomarkers that were read from uploaded lab reports, one a row.',
  key: ['job_id', 'result_index'],
  columns: [
    { name: 'job_id', type: 'text', from: { parent: 'id' }, required: true, description: 'the parsing job' },
    {
      name: 'result_index',
      type: 'integer',
      from: { of: 'position' },
      required: true,
      description: 'position, from 0',
    },
    { name: 'name', type: 'text', from: 'name', description: 'biomarker as the report names it' },
    { name: 'value', type: 'json', from: 'value', description: 'number or text, as it came' },
    { name: 'unit', type: 'text', from: 'unit', description: 'unit of the value' },
    {
      name: 'reference_range',
      type: 'json',
      from: 'reference_range',
      description: 'text or object, as it came',
    },
    { name: 'interpretation', type: 'text', from: 'interpretation', description: 'open list' },
    { name: 'loinc', type: 'json', from: 'loinc', description: 'matched LOINC codes, as they came' },
  ],
});

export const PARSING_JOBS = table({
  name: 'parsing_jobs',
  description: 'Lab report parsing jobs, one a row.',
  key: ['id'],
  columns: [
    { name: 'id', type: 'text', from: 'id', required: true, description: 'identifier' },
    {
      name: 'status',
      type: 'text',
      from: 'status',
      description: 'upload_pending, started, completed, failed, pending_review; open list',
    },
    { name: 'failure_reason', type: 'text', from: 'failure_reason', description: 'why it failed' },
    {
      name: 'needs_human_review',
      type: 'boolean',
      from: 'needs_human_review',
      description: 'a person is to look at it',
    },
    { name: 'is_reviewed', type: 'boolean', from: 'is_reviewed', description: 'a person has' },
    { name: 'metadata', type: 'json', from: 'data.metadata', description: 'about the report, as it came' },
  ],
  nested: [{ at: 'data.results', each: 'array', table: PARSING_JOB_RESULTS }],
});
